"""The examples do what they say."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> ModuleType:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return __import__(request.param)


@pytest.mark.parametrize("example", ["support_agent"], indirect=True)
@pytest.mark.parametrize(("yes", "paid"), [(True, [42.0]), (False, [])])
async def test_a_refund_waits(example: ModuleType, tmp_path: Path, yes: bool, paid: list[float]) -> None:
    asked, shop = [], example.Shop()

    def decide(pending: object) -> bool:
        asked.append(pending)
        return yes

    result = await example.serve(example.ScriptedChatModel(example.rule), shop, decide, tmp_path)
    assert len(asked) == 1
    assert list(shop.refunds.values()) == paid
    assert ("42.00 euros" in result.text) is yes


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
@pytest.mark.parametrize("die", [2, 4])
def test_a_killed_research_pays_for_each_finding_once(tmp_path: Path, die: int) -> None:
    command = [sys.executable, str(EXAMPLES / "research_tree.py"), "--die", str(die)]
    env = {**os.environ, "PYTHONWARNINGS": "error"}
    first = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    assert first.returncode == -9
    second = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    assert second.returncode == 0, second.stderr
    assert second.stdout.count("what is known about") == 4
    paid = (tmp_path / ".outputs/research/paid.txt").read_text("utf-8").splitlines()
    assert len(paid) == len({line.split("\t")[0] for line in paid}) == 4


@pytest.mark.parametrize("example", ["shared_memory"], indirect=True)
async def test_each_agent_sees_its_own_and_the_lead_sees_both(example: ModuleType, tmp_path: Path) -> None:
    answers = await example.main(tmp_path / "team.json")
    assert "nine" in answers["research"]
    assert "six" not in answers["research"]
    assert "six" in answers["kitchen"]
    assert "nine" not in answers["kitchen"]
    assert "six" in answers["lead"]
    assert "nine" in answers["lead"]


@pytest.fixture
async def client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[object]:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.chdir(tmp_path)
    import httpx

    import service

    app = service.create_app()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://test") as http:
        yield http


async def test_the_service_takes_a_message_once_and_remembers_it(client: object) -> None:
    said = {"id": "m1", "text": "Ada likes green tea."}
    first = await client.post("/threads/ada/messages", json=said)  # type: ignore[attr-defined]
    again = await client.post("/threads/ada/messages", json=said)  # type: ignore[attr-defined]
    assert first.json() == again.json()
    assert first.json()["outcome"] == "answered"
    asked = {"id": "m2", "text": "What does Ada like?"}
    answer = await client.post("/threads/ada/messages", json=asked)  # type: ignore[attr-defined]
    assert "green tea" in answer.json()["text"]
    thread = (await client.get("/threads/ada")).json()  # type: ignore[attr-defined]
    assert [m["text"] for m in thread if m["role"] == "user"] == [said["text"], asked["text"]]
    assert (await client.get("/threads/nobody")).status_code == 404  # type: ignore[attr-defined]


async def test_the_service_streams(client: object) -> None:
    said = {"id": "m1", "text": "Ada likes green tea."}
    body = (await client.post("/threads/ada/stream", json=said)).text  # type: ignore[attr-defined]
    events = [json.loads(event.removeprefix("data: ")) for event in body.strip().split("\n\n")]
    assert events[0] == {"tool": "memory_add"}
    assert events[-1]["finished"]["outcome"] == "answered"


async def test_two_messages_at_once_on_one_thread_are_refused_not_mixed(client: object) -> None:
    posts = [
        client.post("/threads/ada/messages", json={"id": f"m{n}", "text": f"Fact {n}."})  # type: ignore[attr-defined]
        for n in range(4)
    ]
    codes = sorted(response.status_code for response in await asyncio.gather(*posts))
    assert codes[0] == 200
    assert set(codes) <= {200, 409}


async def test_the_service_waits_for_an_approval_given_by_another_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import httpx

    import service
    from jianmu.agents import ReActAgent
    from jianmu.messages import ToolCall
    from jianmu.testing.scripted_model import ScriptedChatModel
    from jianmu.tools import tool

    paid: list[int] = []

    @tool(requires_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    model = ScriptedChatModel([ToolCall(id="p", name="pay", arguments={"amount": 5}), "Done."])
    app = service.create_app(ReActAgent(model, tools=[pay]))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://test") as http:
        said = (await http.post("/threads/ada/messages", json={"id": "m", "text": "Pay 5."})).json()
        assert (said["outcome"], paid) == ("suspended", [])
        assert "decision on pay" in said["explanation"]
        (pending,) = said["pending"]
        answers = {"answers": {pending["id"]: True}}
        decided = (await http.post("/threads/ada/answers", json=answers)).json()
        assert (decided["text"], paid) == ("Done.", [5])
        again = await http.post("/threads/ada/answers", json=answers)
        assert again.json()["text"] == "Done."
        wrong = await http.post("/threads/ada/answers", json={"answers": {"nonsense": True}})
        assert wrong.status_code == 404
        assert (await http.post("/threads/ada/cancel")).json() == {"cancelled": False}
    assert paid == [5]
