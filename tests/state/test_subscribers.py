"""Subscribers hear of every committed change; updates from several threads all count."""

import logging
import operator
import threading
from typing import Annotated

import pytest
from pydantic import BaseModel

from jianmu import StateManager


class S(BaseModel):
    total: Annotated[int, operator.add] = 0
    log: Annotated[list[int], operator.add] = []
    n: int = 0


def started() -> StateManager[S]:
    state = StateManager(S)
    state.initialize()
    return state


def test_a_subscriber_hears_the_changed_names_after_the_commit() -> None:
    state = started()
    heard: list[tuple[frozenset[str], int]] = []
    stop = state.subscribe(lambda names: heard.append((names, state.get().n)))
    state.update({"n": 1, "total": 0})
    state.update({"log": [1]})
    stop()
    stop()
    state.update({"n": 2})
    assert heard == [({"n"}, 1), ({"log"}, 1)]


def test_a_subscriber_may_update_the_state() -> None:
    state = started()

    def follow(names: frozenset[str]) -> None:
        if "n" in names:
            state.update({"log": [state.get().n]})

    state.subscribe(follow)
    state.update({"n": 5})
    assert state.get().log == [5]


def test_a_failing_subscriber_is_logged_and_breaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    state = started()
    heard: list[frozenset[str]] = []

    def fail(names: frozenset[str]) -> None:
        raise RuntimeError("subscriber broke")

    state.subscribe(fail)
    state.subscribe(heard.append)
    with caplog.at_level(logging.ERROR, "jianmu.state"):
        state.update({"n": 1})
    assert (state.get().n, heard) == (1, [{"n"}])
    assert "the update stands" in caplog.text


def test_updates_reads_and_dumps_from_many_threads_lose_nothing() -> None:
    state = started()
    failures: list[BaseException] = []

    def work(at: int) -> None:
        try:
            for step in range(200):
                state.update({"total": 1, "log": [at * 1000 + step]})
                seen = state.get()
                assert len(seen.log) == seen.total
                dump = state.dump_checkpoint()
                assert len(dump["log"]) == dump["total"]
        except BaseException as error:  # noqa: BLE001 - shown by the main thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    got = state.get()
    assert (got.total, len(set(got.log))) == (800, 800)
    assert state.dump_runtime_metadata() == {"updates": 800}
