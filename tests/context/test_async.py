"""Building off the event loop."""

import asyncio
import threading
import time
from typing import Any

import pytest
from pydantic import BaseModel

from jianmu import StateManager
from jianmu.errors import ContextError, ProviderError
from jianmu.memory.context import ContextBuilder, FunctionProvider, StateHistoryProvider, Summarise
from jianmu.messages import Message

HISTORY = [Message(role="user", content=f"question {n} about something") for n in range(20)]


async def test_a_blocking_provider_does_not_block_the_loop() -> None:
    release = threading.Event()

    def slow(request: Any) -> str:
        assert release.wait(10)
        return "slow"

    task = asyncio.create_task(ContextBuilder([slow]).abuild([]))
    await asyncio.sleep(0)
    release.set()
    assert (await task).messages[0].text == "slow"


async def test_an_asynchronous_provider_runs_in_the_callers_loop() -> None:
    loop = asyncio.get_running_loop()

    async def where(request: Any) -> str:
        return str(asyncio.get_running_loop() is loop)

    assert (await ContextBuilder([where]).abuild([])).messages[0].text == "True"


async def test_a_cancelled_build_cancels_what_it_waits_for() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def forever(request: Any) -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    task = asyncio.create_task(ContextBuilder([forever]).abuild([]))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(ended.wait(), 5)


async def test_a_build_that_was_cancelled_waits_for_nothing_more() -> None:
    cancelled, went_on = threading.Event(), threading.Event()

    def first(request: Any) -> str:
        assert cancelled.wait(10)
        return "first"

    async def forever(request: Any) -> str:
        await asyncio.Event().wait()
        raise AssertionError

    def last(request: Any) -> str:
        went_on.set()
        return "last"

    task = asyncio.create_task(
        ContextBuilder([first, FunctionProvider(forever, on_error="skip"), last]).abuild([])
    )
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    cancelled.set()
    assert await asyncio.to_thread(went_on.wait, 10)


async def test_a_failing_coroutine_is_a_provider_error() -> None:
    async def broken(request: Any) -> str:
        raise OSError("no network")

    with pytest.raises(ProviderError, match="no network"):
        await ContextBuilder([broken]).abuild([])
    built = await ContextBuilder([FunctionProvider(broken, on_error="skip")]).abuild([])
    assert built.report.section("broken").error == "OSError: no network"


async def test_many_builds_at_once_share_a_builder() -> None:
    async def thread(request: Any) -> str:
        await asyncio.sleep(0)
        return str(request.thread_id)

    builder = ContextBuilder([StateHistoryProvider(), thread], budget=200)
    alone = ContextBuilder([StateHistoryProvider()], budget=None)
    assert alone.build(HISTORY).messages == tuple(HISTORY)
    built = await asyncio.gather(*(builder.abuild(HISTORY[: 5 + n], thread_id=str(n)) for n in range(15)))
    for n, one in enumerate(built):
        assert one.messages[-1].text == str(n)
        assert one.messages[one.stable - 1] is HISTORY[4 + n]


class State(BaseModel):
    messages: list[Message] = []
    summary: dict[str, Any] | None = None


async def test_the_state_is_written_in_the_callers_thread() -> None:
    writers = []
    manager = StateManager(State)
    manager.initialize({"messages": HISTORY})
    manager.subscribe(lambda changed: writers.append(threading.current_thread()))

    async def summarise(before: str | None, messages: Any) -> str:
        return "talk"

    builder = ContextBuilder([StateHistoryProvider()], [Summarise(summarise, over=100)])
    await builder.abuild(manager)
    summary = manager.get().summary
    assert summary is not None
    assert summary["text"] == "talk"
    assert writers == [threading.current_thread()]


def test_a_failing_summary_ends_the_build_and_nothing_is_written() -> None:
    def summarise(before: str | None, messages: Any) -> str:
        raise ContextError("no model")

    manager = StateManager(State)
    manager.initialize({"messages": HISTORY})
    with pytest.raises(ContextError, match="no model"):
        ContextBuilder([StateHistoryProvider()], [Summarise(summarise, over=100)]).build(manager)
    assert manager.get().summary is None


def test_an_early_interrupted_call_and_filters_do_not_slow_the_next_build() -> None:
    from jianmu.memory.context import EstimateCounter, TokenBudget, drop_empty
    from tests.context.test_speed import conversation

    history = conversation(8_000)
    del history[3]
    builder = ContextBuilder.for_react(
        "Be kind.", filters=[drop_empty], budget=TokenBudget(8_000, counter=EstimateCounter())
    )
    first = builder.build(history)
    counted = len(builder._preparer._filtered._pairings[None]._units)
    took = []
    for _ in range(7):
        began = time.process_time()
        assert builder.build(history).messages == first.messages
        took.append(time.process_time() - began)
    assert counted == len(builder._preparer._filtered._pairings[None]._units)
    assert min(took) < 0.02
