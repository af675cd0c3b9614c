"""Kill processes until their run ends, and hold what they did against a run that was left alone."""

from __future__ import annotations

import json
import mmap
import os
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from .program import random_tree
from .worker import PHASES, Death, choose_death, run_worker

__all__ = ["Report", "crash_one_tree"]


@dataclass
class Report:
    """What many crashed runs came to."""

    trees: int = 0
    kills: int = 0
    effects: int = 0
    repeats: int = 0
    nodes: Counter[str] = field(default_factory=Counter)
    instants: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def table(self) -> str:
        """The histogram of deaths and the counts, for people."""
        lines = [f"trees {self.trees}, kills {self.kills}, effects {self.effects}, repeated {self.repeats}"]
        lines += [f"  died {name:<28} {self.instants[name]:>6}" for name in PHASES]
        lines += [f"  nodes: {dict(self.nodes.most_common())}"]
        lines += [f"faults: {len(self.faults)}", *self.faults[:20]]
        return "\n".join(lines)


def _fork(seed: int, folder: Path, death: Death, backend: str, durability: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        null = os.open(folder / "stderr.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(null, 2)
        run_worker(seed, folder, death, backend, durability)
        code = 0
    except BaseException as error:  # noqa: BLE001 - the child must not run on in its parent's code
        import traceback

        traceback.print_exc()
        print(repr(error), file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def _wait(pid: int, kill_after: float | None) -> tuple[int, float]:
    """Wait for the end of a child, or kill it after some seconds; return its wait status and its time."""
    start = time.perf_counter()
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        spent = time.perf_counter() - start
        if done:
            return status, spent
        if kill_after is not None and spent > kill_after:
            os.kill(pid, signal.SIGKILL)
            return os.waitpid(pid, 0)[1], spent
        if spent > 60:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return 255 << 8, spent
        time.sleep(0.0002)


def _read(path: Path) -> list[tuple[str, str]]:
    if not path.exists():
        return []
    lines = path.read_text("utf-8").splitlines()
    return [(line[0], line[2:]) for line in lines]


def crash_one_tree(
    seed: int, folder: Path, report: Report, max_kills: int, backend: str = "file", durability: str = "flush"
) -> int:
    """Run the tree of `seed` whole once, then killed up to `max_kills` times; add to `report`.

    Returns:
        How many kills it took part in.
    """
    rng = Random(f"death of {seed}")
    page = mmap.mmap(-1, 1)
    whole, broken = folder / "whole", folder / "broken"
    whole.mkdir(parents=True)
    broken.mkdir()
    status, spent = _wait(_fork(seed, whole, Death(page), backend, durability), None)
    if status != 0:
        report.faults.append(f"seed {seed}: the uninterrupted run failed: {_stderr(whole)}")
        return 0
    kills = 0
    while True:
        aimed, last = rng.random() < 0.6, kills >= max_kills
        death = Death(page) if last else choose_death(rng, page, aimed)
        after = None if last or aimed else rng.uniform(0.0, spent * 1.1)
        status, _ = _wait(_fork(seed, broken, death, backend, durability), after)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            kills += 1
            report.instants[PHASES[page[0]]] += 1
            continue
        if status != 0:
            report.faults.append(f"seed {seed}: a resumed run failed after {kills} kills: {_stderr(broken)}")
            return kills
        break
    report.trees += 1
    report.kills += kills
    report.nodes.update(type(n).__name__ for n in random_tree(seed, _Nowhere()).iterate())
    _compare(seed, whole, broken, report)
    page.close()
    return kills


class _Nowhere:
    def happen(self, key: str) -> str:
        return key

    def answered(self, key: str) -> None:
        pass


def _stderr(folder: Path) -> str:
    path = folder / "stderr.log"
    return path.read_text("utf-8")[-300:] if path.exists() else ""


def _effect(key: str) -> str:
    """The key without the run's own id."""
    return key.split("/", 1)[1]


def _compare(seed: int, whole: Path, broken: Path, report: Report) -> None:
    expected: dict[str, Any] = json.loads((whole / "result.json").read_text("utf-8"))
    found: dict[str, Any] = json.loads((broken / "result.json").read_text("utf-8"))
    if expected != found:
        report.faults.append(f"seed {seed}: result {_difference(expected, found)}")
    wanted = Counter(_effect(what) for kind, what in _read(whole / "world.log") if kind == "E")
    log = _read(broken / "world.log")
    keys = [what for kind, what in log if kind == "E"]
    did = Counter(_effect(key) for key in keys)
    report.effects += len(did)
    repeats = sum(did.values()) - len(did)
    report.repeats += repeats
    if set(wanted) != set(did):
        report.faults.append(f"seed {seed}: effects {sorted(set(wanted) ^ set(did))[:5]} only in one run")
    if len({key.split("/", 1)[0] for key in keys}) > 1:
        report.faults.append(f"seed {seed}: an effect came back under another idempotency key")
    _check_order(seed, log, report)


def _check_order(seed: int, log: list[tuple[str, str]], report: Report) -> None:
    """No effect after its answer was saved, or twice in one life; no restore of less than was saved."""
    answered: set[str] = set()
    this_life: set[str] = set()
    saved = 0
    for kind, what in log:
        if kind == "A":
            answered.add(what)
        elif kind == "L":
            this_life = set()
        elif kind == "E":
            if what in answered or what in this_life:
                report.faults.append(f"seed {seed}: {what} ran again though its answer was saved or near")
            this_life.add(what)
        elif kind == "S":
            saved = max(saved, int(what))
        elif kind == "R" and int(what) < saved:
            report.faults.append(f"seed {seed}: restored step {what} though {saved} was saved")


def _difference(expected: dict[str, Any], found: dict[str, Any]) -> str:
    parts = []
    for name in expected:
        if expected[name] != found.get(name):
            if isinstance(expected[name], list):
                missing = Counter(expected[name]) - Counter(found[name])
                extra = Counter(found[name]) - Counter(expected[name])
                parts.append(f"{name}: missing {sorted(missing)[:4]}, extra {sorted(extra)[:4]}")
            else:
                parts.append(f"{name}: {expected[name]} became {found.get(name)}")
    return "; ".join(parts)
