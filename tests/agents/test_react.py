"""The agent, through its public face, with a scripted model."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from jianmu.agents import (
    AgentResult,
    EchoChatModel,
    ModelFinished,
    ReActAgent,
    TextDelta,
    ToolFinished,
    ToolStarted,
    Turn,
    TurnFinished,
)
from jianmu.errors import (
    ChatModelError,
    CheckpointNotFoundError,
    ConfigError,
    JianmuError,
    LongTermMemoryError,
    StorageError,
    TreeChangedError,
)
from jianmu.events import RuntimeEvent, RuntimeEventBus
from jianmu.memory import FileCheckpointer, MemoryService, SimpleStore
from jianmu.messages import Message, ToolCall
from jianmu.runtime import Ask, Sequence
from jianmu.testing.scripted_model import ScriptedChatModel, ScriptedRequest
from jianmu.tools import ToolSet, current_idempotency_key, tool


def call(name: str, call_id: str = "c1", **arguments: Any) -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def test_an_answer_without_tools_takes_one_completion() -> None:
    model = ScriptedChatModel(["Hello!"])
    result = await ReActAgent(model, system_prompt="Be kind.").run("Hi")
    assert result.text == "Hello!"
    assert result.outcome == "answered"
    assert [(m.role, m.text) for m in model.requests[0].messages] == [("system", "Be kind."), ("user", "Hi")]


async def test_tools_run_and_the_model_sees_their_results() -> None:
    model = ScriptedChatModel([[call("add", "x", a=1, b=2), call("add", "y", a=3, b=4)], "3 and 7"])
    result = await ReActAgent(model, tools=[add]).run("sums?")
    assert result.text == "3 and 7"
    assert [(m.tool_call_id, m.text) for m in model.requests[1].messages if m.role == "tool"] == [
        ("x", "3"),
        ("y", "7"),
    ]
    assert [m.role for m in result.messages] == ["assistant", "tool", "tool", "assistant"]


@pytest.mark.parametrize(("read_only", "parallel"), [(True, None), (False, 2)])
async def test_parallel_calls_run_at_the_same_time_and_keep_their_order(
    read_only: bool, parallel: int | None
) -> None:
    both = asyncio.Barrier(2)

    @tool(read_only=read_only)
    async def meet(who: str) -> str:
        """Wait for the other."""
        async with asyncio.timeout(5):
            await both.wait()
        return who

    model = ScriptedChatModel([[call("meet", "x", who="a"), call("meet", "y", who="b")], "done"])
    result = await ReActAgent(model, tools=[meet], parallel_tools=parallel).run("go")
    assert [m.text for m in result.messages if m.role == "tool"] == ["a", "b"]


async def test_what_may_change_something_runs_alone_and_in_order() -> None:
    seen: list[str] = []

    async def step(name: str) -> str:
        seen.append(f"{name}(")
        await asyncio.sleep(0)
        seen.append(f"){name}")
        return name

    @tool(read_only=True)
    async def look(name: str) -> str:
        """Look."""
        return await step(name)

    @tool
    async def change(name: str) -> str:
        """Change."""
        return await step(name)

    asked = [("look", "a"), ("look", "b"), ("change", "c"), ("change", "d"), ("look", "e"), ("nothing", "f")]
    calls = [ToolCall(id=name, name=kind, arguments={"name": name}) for kind, name in asked]
    result = await ReActAgent(ScriptedChatModel([calls, "done"]), tools=[look, change]).run("go")
    assert [m.tool_call_id for m in result.messages if m.role == "tool"] == list("abcdef")
    assert sorted(seen[:4]) == [")a", ")b", "a(", "b("]
    assert seen[1] == "b("
    assert seen[4:] == ["c(", ")c", "d(", ")d", "e(", ")e"]


@pytest.mark.parametrize("limit", ["max_steps", "parallel_tools"])
def test_a_limit_below_one_is_refused_by_name(limit: str) -> None:
    with pytest.raises(ConfigError, match=limit):
        ReActAgent(ScriptedChatModel([]), **{limit: 0})  # type: ignore[arg-type]


async def test_calls_with_the_same_id_are_two_calls() -> None:
    model = ScriptedChatModel([[call("add", "x", a=1, b=1), call("add", "x", a=2, b=2)], "done"])
    result = await ReActAgent(model, tools=[add]).run("go")
    assert [m.text for m in result.messages if m.role == "tool"] == ["2", "4"]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (call("nothing"), "there is no tool 'nothing'"),
        (call("add", a=1), "b"),
        (ToolCall(id="c1", name="add", arguments='{"a": 1'), "not valid JSON"),
    ],
)
async def test_a_call_that_cannot_run_is_a_result_that_the_model_can_act_on(
    asked: ToolCall, says: str
) -> None:
    model = ScriptedChatModel([asked, "sorry"])
    result = await ReActAgent(model, tools=[add]).run("go")
    (answer,) = [m for m in result.messages if m.role == "tool"]
    assert answer.is_error
    assert says in answer.text
    assert result.text == "sorry"


async def test_a_thread_remembers_its_messages_and_others_do_not(tmp_path: Path) -> None:
    def rule(request: ScriptedRequest) -> str:
        return f"turn {sum(m.role == 'user' for m in request.messages)}"

    agent = ReActAgent(ScriptedChatModel(rule), checkpointer=FileCheckpointer(tmp_path))
    assert (await agent.run("a", thread_id="one")).text == "turn 1"
    assert (await agent.run("b", thread_id="one")).text == "turn 2"
    assert (await agent.run("c", thread_id="two")).text == "turn 1"
    again = ReActAgent(ScriptedChatModel(rule), checkpointer=FileCheckpointer(tmp_path))
    assert (await again.run("d", thread_id="one")).text == "turn 3"


async def test_an_agent_without_a_checkpointer_remembers_in_its_process() -> None:
    agent = ReActAgent(ScriptedChatModel(["one", "two"]))
    await agent.run("a")
    assert [m.text for m in (await agent.run("b")).messages] == ["two"]
    assert len(agent.model.requests[1].messages) == 4  # type: ignore[attr-defined]


async def test_the_step_limit_ends_the_turn() -> None:
    model = ScriptedChatModel(lambda request: call("add", f"c{len(request.messages)}", a=1, b=1))
    result = await ReActAgent(model, tools=[add], max_steps=3).run("go")
    assert result.outcome == "step_limit"
    assert len(model.requests) == 3


async def test_usage_is_the_sum_of_the_turn() -> None:
    model = ScriptedChatModel([call("add", a=1, b=1), "four"])
    agent = ReActAgent(model, tools=[add], system_prompt="")
    assert (await agent.run("go")).usage.output_tokens == 4
    model._left.append("x")
    assert (await agent.run("go")).usage.output_tokens == 1


async def test_the_stream_tells_all_in_order() -> None:
    model = ScriptedChatModel([call("add", a=1, b=1), "It is two."], piece=4)
    agent = ReActAgent(model, tools=[add])
    events = [event async for event in agent.stream("go")]
    kinds = [type(event) for event in events]
    assert kinds[kinds.index(ModelFinished) :] == [
        ModelFinished,
        ToolStarted,
        ToolFinished,
        TextDelta,
        TextDelta,
        TextDelta,
        ModelFinished,
        TurnFinished,
    ]
    assert isinstance(events[-1], TurnFinished)
    assert events[-1].result.text == "It is two."


async def test_a_failed_model_is_raised_and_the_same_call_tries_again() -> None:
    model = ScriptedChatModel([ChatModelError("overloaded", kind="rate_limit"), "fine now"])
    agent = ReActAgent(model)
    with pytest.raises(ChatModelError, match="overloaded") as caught:
        await agent.run("hello")
    assert caught.value.kind == "rate_limit"
    result = await agent.run("hello")
    assert result.text == "fine now"
    assert [m.text for m in model.requests[1].messages if m.role == "user"] == ["hello"]


async def test_a_failed_turn_can_be_left_for_another() -> None:
    model = ScriptedChatModel([ChatModelError("down"), "both seen"])
    agent = ReActAgent(model)
    with pytest.raises(ChatModelError):
        await agent.run("one")
    await agent.run("two")
    assert [m.text for m in model.requests[1].messages if m.role == "user"] == ["one", "two"]


async def test_a_bug_in_a_model_is_raised_as_it_is_and_asked_once() -> None:
    model = ScriptedChatModel([])
    with pytest.raises(AssertionError, match="used up"):
        await ReActAgent(model).run("hello")
    assert len(model.requests) == 1


async def test_going_on_with_nothing_says_so() -> None:
    with pytest.raises(CheckpointNotFoundError, match="give text"):
        await ReActAgent(ScriptedChatModel([])).run(thread_id="new")


async def test_a_message_id_is_taken_once() -> None:
    model = ScriptedChatModel(["one", "two"])
    agent = ReActAgent(model)
    first = await agent.run("hello", message_id="m1")
    again = await agent.run("hello", message_id="m1")
    assert (first.text, again.text) == ("one", "one")
    assert (await agent.run("hello", message_id="m2")).text == "two"


async def test_the_same_text_after_a_finished_turn_is_a_new_turn() -> None:
    agent = ReActAgent(ScriptedChatModel(["one", "two"]))
    await agent.run("hello")
    assert (await agent.run("hello")).text == "two"


async def test_a_cancelled_turn_goes_on_without_asking_again(tmp_path: Path) -> None:
    ran: list[str] = []
    blocked = asyncio.Event()

    @tool
    async def quick() -> str:
        """Be quick."""
        ran.append("quick")
        return "q"

    @tool
    async def slow() -> str:
        """Be slow the first time."""
        ran.append("slow")
        if ran.count("slow") == 1:
            blocked.set()
            await asyncio.Event().wait()
        return "s"

    model = ScriptedChatModel([[call("quick", "a"), call("slow", "b")], "done"])
    agent = ReActAgent(model, tools=[quick, slow], checkpointer=FileCheckpointer(tmp_path), parallel_tools=2)
    task = asyncio.create_task(agent.run("go", thread_id="t"))
    await blocked.wait()
    await asyncio.sleep(0.05)  # quick's answer is saved off the loop
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    result = await agent.run("go", thread_id="t")
    assert result.text == "done"
    assert ran == ["quick", "slow", "slow"]
    assert len(model.requests) == 2


async def test_another_text_first_ends_the_turn_that_was_cut_off() -> None:
    started = asyncio.Event()

    def rule(request: ScriptedRequest) -> str:
        return "/".join(m.text for m in request.messages if m.role == "user")

    class Slow(ScriptedChatModel):
        async def stream(self, *args: Any, **kwargs: Any) -> Any:
            if not started.is_set():
                started.set()
                await asyncio.Event().wait()
            async for part in super().stream(*args, **kwargs):
                yield part

    agent = ReActAgent(Slow(rule))
    task = asyncio.create_task(agent.run("one"))
    await started.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    results: list[AgentResult] = [e.result async for e in agent.stream("two") if isinstance(e, TurnFinished)]
    assert [result.text for result in results] == ["one", "one/two"]


async def test_interrupting_an_older_turn_that_is_ended_first_leaves_the_new_one_alone() -> None:
    calls = 0

    class Slow(ScriptedChatModel):
        async def stream(self, *args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls < 3:
                yield TextDelta("so far")
                await asyncio.Event().wait()
            for _ in range(3):
                await asyncio.sleep(0)
            async for part in super().stream(*args, **kwargs):
                yield part

    agent = ReActAgent(Slow(["new answer"]))
    async with agent.stream("one") as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break
    results = []
    async with agent.stream("two") as events:
        async for event in events:
            if isinstance(event, TextDelta) and event.text == "so far":
                events.interrupt()
            if isinstance(event, TurnFinished):
                results.append((event.result.outcome, event.result.text))
    assert results == [("interrupted", "so far [interrupted]"), ("answered", "new answer")]


async def test_interrupting_before_the_first_event_ends_the_turn_at_once() -> None:
    model = ScriptedChatModel(["never"])
    stream = ReActAgent(model).stream("one")
    stream.interrupt()
    results = [event.result async for event in stream if isinstance(event, TurnFinished)]
    assert [(result.outcome, result.text) for result in results] == [("interrupted", "[interrupted]")]


async def test_interrupting_keeps_what_the_model_said() -> None:
    class Endless(ScriptedChatModel):
        async def stream(self, *args: Any, **kwargs: Any) -> Any:
            yield TextDelta("so far")
            await asyncio.Event().wait()

    agent = ReActAgent(Endless([]))
    async with agent.stream("talk") as events:
        async for event in events:
            if isinstance(event, TextDelta):
                events.interrupt()
            if isinstance(event, TurnFinished):
                assert event.result.outcome == "interrupted"
                assert event.result.text == "so far [interrupted]"
    stored = await agent.stored_turn("default")
    assert stored is not None
    assert not stored.unfinished


async def test_interrupting_stops_running_tools() -> None:
    @tool
    async def forever() -> str:
        """Never end."""
        await asyncio.Event().wait()
        return ""

    agent = ReActAgent(ScriptedChatModel([call("forever")]), tools=[forever])
    stream = agent.stream("go")
    last: Any = None
    async for last in stream:
        if isinstance(last, ToolStarted):
            stream.interrupt()
    assert last.result.outcome == "interrupted"
    assert [m.is_error for m in last.result.messages if m.role == "tool"] == [True]


async def test_calls_that_had_not_begun_at_an_interruption_do_not_run() -> None:
    ran: list[str] = []

    @tool
    async def forever(name: str) -> str:
        """Never end."""
        ran.append(name)
        await asyncio.Event().wait()
        return ""

    asked = [ToolCall(id=name, name="forever", arguments={"name": name}) for name in "ab"]
    agent = ReActAgent(ScriptedChatModel([asked]), tools=[forever])
    stream = agent.stream("go")
    started, last = 0, None
    async for last in stream:
        if isinstance(last, ToolStarted):
            started += 1
            stream.interrupt()
    assert isinstance(last, TurnFinished)
    assert (ran, started) == (["a"], 1)
    texts = [m.text for m in last.result.messages if m.role == "tool"]
    assert ["before it ended" in texts[0], "before it began" in texts[1]] == [True, True]


async def test_leaving_a_stream_early_stops_the_run() -> None:
    agent = ReActAgent(ScriptedChatModel([call("add", a=1, b=1), "two"]), tools=[add])
    async with agent.stream("go") as events:
        async for event in events:
            if isinstance(event, ModelFinished):
                break
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "agent turn"]
    assert (await agent.run("go")).text == "two"


async def test_many_threads_run_at_the_same_time() -> None:
    agent = ReActAgent(ScriptedChatModel(lambda request: request.messages[-1].text))
    results = await asyncio.gather(*(agent.run(f"t{n}", thread_id=str(n)) for n in range(20)))
    assert [result.text for result in results] == [f"t{n}" for n in range(20)]


async def test_a_tool_sees_the_key_of_its_own_call() -> None:
    keys: list[str | None] = []

    @tool
    def note() -> str:
        """Take the key."""
        keys.append(current_idempotency_key.get())
        return "ok"

    model = ScriptedChatModel([[call("note", "a"), call("note", "b")], "done"])
    await ReActAgent(model, tools=[note]).run("go")
    assert len({*keys}) == 2
    assert all(keys)
    assert len({request.idempotency_key for request in model.requests}) == 2


async def test_figures_go_to_the_bus_and_content_does_not() -> None:
    bus, seen = RuntimeEventBus(), list[RuntimeEvent]()
    bus.subscribe(seen.append)
    model = ScriptedChatModel([call("add", a=41, b=1), "SECRET answer"])
    await ReActAgent(model, tools=[add], event_bus=bus).run("SECRET question")
    bus.drain()
    finished = [event for event in seen if event.type == "model.finished"]
    assert [event.payload["finish_reason"] for event in finished] == ["tool_calls", "stop"]
    assert finished[1].payload["output_tokens"] == len("SECRET answer")
    assert [e.payload["tool"] for e in seen if e.type == "tool.finished"] == ["add"]
    assert "SECRET" not in str([event for event in seen if event.type.startswith(("model.", "tool."))])


# Memory


@pytest.fixture
def memory(tmp_path: Path) -> MemoryService:
    return MemoryService(SimpleStore(tmp_path / "store.json"), ("ada",))


async def test_the_model_remembers_by_tools(memory: MemoryService) -> None:
    store = call("memory_add", content="Ada drinks green tea")
    await ReActAgent(ScriptedChatModel([store, "noted"]), memory=memory).run("I drink green tea")
    model = ScriptedChatModel([call("memory_search", query="tea"), "green"])
    result = await ReActAgent(model, memory=memory).run("What do I drink?")
    assert "Ada drinks green tea" in result.messages[1].text
    assert model.requests[0].tool_names == ("memory_search", "memory_add")


async def test_memory_can_be_done_for_the_model(memory: MemoryService) -> None:
    await ReActAgent(ScriptedChatModel(["Nice."]), memory=memory, memory_use="auto").run("I drink green tea")
    model = ScriptedChatModel(["green"])
    await ReActAgent(model, memory=memory, memory_use="auto").run("Which tea do I drink?")
    assert model.requests[0].tool_names == ()
    assert any("I drink green tea" in message.text for message in model.requests[0].messages)
    assert len(memory.search("green tea", limit=10)) == 3  # both turns: I drink..., Which tea..., green


@pytest.mark.parametrize("error", [LongTermMemoryError, StorageError])
async def test_a_memory_that_cannot_store_does_not_take_the_answer(
    tmp_path: Path, error: type[JianmuError]
) -> None:
    class Broken(SimpleStore):
        def record(self, *args: Any, **kwargs: Any) -> Any:
            raise error("disk full")

    bus, seen = RuntimeEventBus(), list[RuntimeEvent]()
    bus.subscribe(seen.append)
    memory = MemoryService(Broken(tmp_path / "s.json"), ("a",))
    agent = ReActAgent(ScriptedChatModel(["hi"]), memory=memory, memory_use="auto", event_bus=bus)
    assert (await agent.run("hello")).text == "hi"
    bus.drain()
    assert [event.type for event in seen].count("memory.failed") == 1


async def test_switching_the_use_of_memory_keeps_the_thread(memory: MemoryService, tmp_path: Path) -> None:
    checkpointer = FileCheckpointer(tmp_path / "threads")
    await ReActAgent(ScriptedChatModel(["a"]), memory=memory, checkpointer=checkpointer).run("one")
    agent = ReActAgent(ScriptedChatModel(["b"]), memory=memory, memory_use="auto", checkpointer=checkpointer)
    assert (await agent.run("two")).text == "b"


def test_one_agent_serves_two_event_loops() -> None:
    agent = ReActAgent(ScriptedChatModel(["one", "two"]))
    assert asyncio.run(agent.run("a")).text == "one"
    assert asyncio.run(agent.run("b")).text == "two"


async def test_the_history_is_typed_state() -> None:
    agent = ReActAgent(ScriptedChatModel([call("add", a=1, b=1), "two"]), tools=[add])
    await agent.run("go")
    stored = await agent.stored_turn("default")
    assert stored is not None
    assert all(isinstance(message, Message) for message in stored.state.messages)
    assert [message.role for message in stored.state.messages] == ["user", "assistant", "tool", "assistant"]


async def test_the_echo_rule_answers_the_user_and_not_what_was_recalled(memory: MemoryService) -> None:
    agent = ReActAgent(EchoChatModel(), memory=memory, memory_use="both")
    await agent.run("Tea is green.")
    result = await agent.run("What is green?")
    assert result.messages[0].tool_calls[0].arguments == {"query": "What is green?"}


async def test_a_budget_keeps_the_prompt_small() -> None:
    model = ScriptedChatModel(lambda request: "x " * 200)
    agent = ReActAgent(model, system_prompt="", budget=1500)
    for turn in range(12):
        await agent.run(f"question {turn}")
    assert len(model.requests[-1].messages) < 12
    assert model.requests[-1].messages[-1].text == "question 11"


class Longer(ReActAgent):
    """An agent with one more leaf, which asks."""

    def tree(self, turn: Turn, tools: ToolSet) -> Sequence:
        root = super().tree(turn, tools)
        return Sequence("longer", memory=True, children=[root, Ask({"happy?": True})])


async def test_a_thread_goes_on_when_the_tree_has_changed_between_turns(tmp_path: Path) -> None:
    checkpointer = FileCheckpointer(tmp_path)
    await ReActAgent(ScriptedChatModel(["one"]), checkpointer=checkpointer).run("a")
    model = ScriptedChatModel(["two"])
    agent = Longer(model, checkpointer=checkpointer)
    result = await agent.run("b")
    assert [m.text for m in model.requests[0].messages[1:]] == ["a", "one", "b"]
    assert [(pending.tool, pending.arguments) for pending in result.pending] == [("", {"happy?": True})]
    assert (await agent.run(answers={result.pending[0].id: True})).text == "two"


async def test_a_message_sent_again_after_the_tree_has_changed_gets_its_answer_again(tmp_path: Path) -> None:
    checkpointer = FileCheckpointer(tmp_path)
    first = await ReActAgent(ScriptedChatModel(["one"]), checkpointer=checkpointer).run("a", message_id="1")
    again = await Longer(ScriptedChatModel([]), checkpointer=checkpointer).run("a", message_id="1")
    assert (again.text, again.messages) == (first.text, first.messages)


async def test_a_changed_tree_is_refused_in_the_middle_of_a_turn(tmp_path: Path) -> None:
    checkpointer = FileCheckpointer(tmp_path)
    await Longer(ScriptedChatModel(["one"]), checkpointer=checkpointer).run("a")
    with pytest.raises(TreeChangedError):
        await ReActAgent(ScriptedChatModel(["two"]), checkpointer=checkpointer).run("a")
