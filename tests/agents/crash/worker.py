"""The process that is killed: one turn of a long conversation against the provider server."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from multiprocessing.connection import Connection
from pathlib import Path

from jianmu.agents import AnthropicChatModel, ChatModel, OpenAIChatModel, ReActAgent, RetryPolicy
from jianmu.memory import FileCheckpointer, InMemoryCheckpointer
from jianmu.memory.checkpoint.base import CheckpointerProtocol
from jianmu.tools import FunctionTool, current_idempotency_key, tool

TASK = "Charge all the accounts."


def charger(url: str) -> FunctionTool:
    """Make the tool whose effect is a request to the server."""

    @tool
    def charge(effect: str) -> str:
        """Charge an account, once."""
        body = json.dumps({"effect": effect}).encode()
        key = current_idempotency_key.get() or ""
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        request = urllib.request.Request(f"{url}/tools/charge", body, headers)
        with urllib.request.urlopen(request, timeout=30) as response:
            response.read()
        return f"charged {effect}"

    return charge


def open_store(kind: str, folder: str) -> CheckpointerProtocol:
    """Open the checkpointer of the proof."""
    if kind == "file":
        return FileCheckpointer(Path(folder))
    if kind == "forgetful":
        return InMemoryCheckpointer()
    from jianmu.memory import SqliteCheckpointer

    return SqliteCheckpointer(Path(folder) / "threads.db")


def model_for(wire: str, url: str, key: str) -> ChatModel:
    """Make the chat model for one wire format."""
    retry = RetryPolicy(first_wait=0.01)
    if wire == "openai":
        return OpenAIChatModel("m", base_url=f"{url}/v1", api_key=key, retry=retry)
    return AnthropicChatModel("m", base_url=url, api_key=key, retry=retry)


def agent_for(
    wire: str, store: str, folder: str, url: str, key: str, parallel: int | None = None
) -> ReActAgent:
    """Make the agent, the same in every process."""
    return ReActAgent(
        model_for(wire, url, key),
        tools=[charger(url)],
        checkpointer=open_store(store, folder),
        parallel_tools=parallel,
    )


def main(
    at_work: Connection,
    thread_id: str,
    wire: str,
    store: str,
    folder: str,
    url: str,
    key: str,
    parallel: int | None,
) -> None:
    """Run the turn to its end, from wherever it was; say when the work begins."""
    agent = agent_for(wire, store, folder, url, key, parallel)
    at_work.send(True)
    result = asyncio.run(agent.run(TASK, thread_id=thread_id, message_id="task"))
    assert result.text == "All accounts are charged.", result
