"""Kill a process while it saves, look at what it left, and let the next one go on; again and again.

The child is forked with everything imported, opens the store itself, takes the lease (which the killed one
before it still holds on paper), and saves as fast as it can. It reports each save that has returned.
"""

from __future__ import annotations

import os
import random
import signal
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jianmu.memory.checkpoint.delta_checkpointer import DeltaCheckpointer

Open = Callable[[], DeltaCheckpointer]


@dataclass
class Report:
    """What came of so many kills.

    Attributes:
        kills: Children killed.
        acknowledged: Saves that had returned.
        lost: Those of them that were not there afterwards.
        mixed: Steps whose content is not what was saved.
        errors: What else went wrong.
    """

    kills: int = 0
    acknowledged: int = 0
    lost: int = 0
    mixed: int = 0
    errors: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether nothing went wrong."""
        return not (self.lost or self.mixed or self.errors)


def state_at(step: int) -> dict[str, Any]:
    """Return the one state that belongs to a step: a list that grows and is cut, and fields that change."""
    return {
        "n": step,
        "items": [{"n": number, "text": f"{number} " * 20} for number in range(step - step % 50, step + 1)],
        "odd": {"yes": [step]} if step % 2 else None,
    }


def save_until_killed(open_store: Open, report_to: int) -> None:
    """Save step after step; each acknowledged one is 8 bytes in the pipe."""
    store = open_store()
    store.acquire("t", ttl=3600)
    newest = store.get_checkpoint("t")
    step = -1 if newest is None else newest["step"]
    while True:
        step += 1
        store.save_checkpoint("t", step, state_at(step), {"0": "RUNNING"}, {"step": step})
        os.write(report_to, struct.pack("<q", step))


def kill_once(open_store: Open, seconds: float) -> tuple[list[int], str]:
    """Return the steps that a child acknowledged before it was killed, and how it ended if not by that."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            save_until_killed(open_store, writer)
        except BaseException as error:  # noqa: BLE001 - told to the test
            os.write(writer, b"!" + f"{type(error).__name__}: {error}".encode()[:300].ljust(7))
        finally:
            os._exit(1)
    os.close(writer)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    told = b""
    while data := os.read(reader, 65536):
        told += data
    os.close(reader)
    whole, _, failure = told.partition(b"!") if b"!" in told[-320:] and len(told) % 8 else (told, b"", b"")
    steps = [each[0] for each in struct.iter_unpack("<q", whole[: len(whole) // 8 * 8])]
    return steps, failure.decode(errors="replace").strip()


def look(open_store: Open, acknowledged: list[int], report: Report) -> None:
    """Compare what is stored with what was acknowledged."""
    store = open_store()
    try:
        newest = store.get_checkpoint("t")
        last = -1 if newest is None else newest["step"]
        kept = {info.step for info in store.list_checkpoints("t", limit=len(acknowledged) + 5)}
        report.lost += sum(step not in kept for step in acknowledged[-len(kept) or None :])
        report.lost += bool(acknowledged) and last < acknowledged[-1]
        for step in {last, *acknowledged[-2:]} - {-1}:
            found = store.get_checkpoint("t", step=step)
            whole = {"step": step, "state": state_at(step), "tree": {"0": "RUNNING"}}
            report.mixed += found != whole | {"runtime_metadata": {"step": step}}
    finally:
        store.close()


def kill_while_saving(open_store: Open, kills: int, seed: int, *, longest: float = 0.15) -> Report:
    """Kill so many children at random moments.

    Args:
        open_store: Opens the store; called in each child and, to look, in a child of its own.
        kills: How many.
        seed: Of the moments.
        longest: Seconds that a child lives at most.
    """
    moments, report = random.Random(seed), Report()
    for _ in range(kills):
        steps, failure = kill_once(open_store, moments.uniform(0.005, longest))
        report.kills += 1
        report.acknowledged += len(steps)
        if failure:
            report.errors.append(failure)
        try:
            look(open_store, steps, report)
        except Exception as error:  # noqa: BLE001 - told to the test
            report.errors.append(f"{type(error).__name__}: {error}")
    return report
