"""What the runner adds to a bare tick, for wide and parked trees of 10, 100 and 1,000 nodes.

`python benchmarks/runtime.py [--json FILE] [--rounds N]`. A wide tree is a Parallel of Parallels whose
leaves are all RUNNING, so that every node is ticked; a parked one is a Sequence with memory that stands at
its last child. Bare is `root.tick_once()`. The runner's tick is a run of some hundred ticks divided by their
number; a tick period causes them, so each includes one turn of the event loop. Rounds are interleaved; a
figure is the fastest round's, in microseconds (medians are in the JSON). The aim for the NullCheckpointer is
at most 60 µs + 15 % of the bare tick.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from py_trees import behaviours, composites
from py_trees.behaviour import Behaviour
from py_trees.common import ParallelPolicy
from pydantic import BaseModel

from jianmu import ReactiveRunner, StateManager
from jianmu.memory import FileCheckpointer, InMemoryCheckpointer, NullCheckpointer

SIZES = (10, 100, 1_000)


class State(BaseModel):
    n: int = 0


def wide(size: int) -> Behaviour:
    if size == 1:
        return behaviours.Running("leaf")
    share, rest = divmod(size - 1, 10)
    sizes = [share + (i < rest) for i in range(10)]
    children = [wide(each) for each in sizes if each]
    return composites.Parallel("wide", ParallelPolicy.SuccessOnAll(synchronise=False), children)


def parked(size: int) -> Behaviour:
    done = [behaviours.Success("done") for _ in range(size - 2)]
    return composites.Sequence("parked", True, [*done, behaviours.Running("leaf")])


def bare(tree: Behaviour, ticks: int) -> float:
    began = time.perf_counter()
    for _ in range(ticks):
        tree.tick_once()
    return (time.perf_counter() - began) / ticks


async def driven(runner: ReactiveRunner, checkpointer: Any, ticks: int, thread: str) -> float:
    began = time.perf_counter()
    await runner.run(checkpointer=checkpointer, thread_id=thread, max_ticks=ticks)
    return (time.perf_counter() - began) / ticks


async def measure(make: Callable[[int], Behaviour], size: int, rounds: int, folder: Path) -> dict[str, Any]:
    tree = make(size)
    tree.tick_once()
    stores: dict[str, tuple[Any, int]] = {
        "null": (NullCheckpointer(), 500),
        "memory": (InMemoryCheckpointer(history=1), 100),
        "file_flush": (FileCheckpointer(folder / f"{make.__name__}{size}", durability="flush"), 50),
    }
    runner = ReactiveRunner(make(size), StateManager(State), tick_period=1e-9)
    times: dict[str, list[float]] = defaultdict(list)
    for number in range(rounds):
        times["bare"].append(bare(tree, max(50, 20_000 // size)))
        for name, (store, ticks) in stores.items():
            times[name].append(await driven(runner, store, ticks, f"{number}"))
    row = {name: min(each) * 1e6 for name, each in times.items()}
    medians = {name: statistics.median(each) * 1e6 for name, each in times.items()}
    row["added"] = row["null"] - row["bare"]
    row["allowed"] = 60 + 0.15 * row["bare"]
    nodes = sum(1 for _ in tree.iterate())
    return {
        "tree": make.__name__,
        "nodes": nodes,
        **row,
        "medians": medians,
        "met": row["added"] <= row["allowed"],
    }


def show(rows: list[dict[str, Any]]) -> None:
    columns = ("bare", "null", "added", "allowed", "memory", "file_flush")
    print(f"{'tree':<8}{'nodes':>7}" + "".join(f"{name:>12}" for name in columns) + "  aim")
    for row in rows:
        figures = "".join(f"{row[name]:>12.1f}" for name in columns)
        print(f"{row['tree']:<8}{row['nodes']:>7}{figures}  {'met' if row['met'] else 'MISSED'}")


async def main(rounds: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        return [await measure(make, size, rounds, Path(folder)) for make in (wide, parked) for size in SIZES]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    found = asyncio.run(main(arguments.rounds))
    show(found)
    if arguments.json:
        arguments.json.write_text(json.dumps({"unit": "microseconds", "rows": found}, indent=2), "utf-8")
