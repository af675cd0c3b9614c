"""What the typed state costs against its size: `python benchmarks/state.py [--json FILE] [--rounds N]`.

Each figure is the median over rounds that are interleaved between the sizes, so that a busy machine slows all
of them alike. `append` is one update that adds one item to a list with an `operator.add` reducer; `read` is
`get()`; `dump` follows an append and so has one new item; `text` is `dump_json` of that dump; `delta` is
`changes_between` it and the dump before; `load` is `initialize` from a stored dump.
"""

import argparse
import gc
import json
import operator
import platform
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel

from jianmu import Message, StateManager
from jianmu.codec.dump import changes_between, dump_json

SIZES = (0, 100, 2_000, 20_000)
TEXT = "What the model said, and it said a good deal of it. " * 7


class Note(BaseModel):
    """An item that can change, and so is copied when it is read."""

    role: str
    content: str


class Chat(BaseModel):
    count: int = 0
    topic: str = "none"
    messages: Annotated[list[Message], operator.add] = []
    notes: Annotated[list[Note], operator.add] = []
    records: Annotated[list[dict[str, Any]], operator.add] = []


ITEMS: dict[str, Callable[[], Any]] = {
    "messages": lambda: Message(role="user", content=TEXT),
    "notes": lambda: Note(role="user", content=TEXT),
    "records": lambda: {"role": "user", "content": TEXT},
}


def microseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter_ns()
    work()
    return (time.perf_counter_ns() - began) / 1000


def one_round(state: StateManager[Chat], field: str, times: dict[str, list[float]]) -> None:
    update = {field: [ITEMS[field]()]}
    times["append"].append(microseconds(lambda: state.update(update)))
    times["read"].append(microseconds(state.get))
    before = state.dump_checkpoint()
    state.update(update)
    times["dump"].append(microseconds(state.dump_checkpoint))
    dump = state.dump_checkpoint()
    times["text"].append(microseconds(lambda: dump_json(dump)))
    times["delta"].append(microseconds(lambda: changes_between(before, dump)))


def measure(field: str, rounds: int) -> list[dict[str, Any]]:
    states: dict[int, StateManager[Chat]] = {}
    times: dict[int, dict[str, list[float]]] = {size: defaultdict(list) for size in SIZES}
    for size in SIZES:
        states[size] = StateManager(Chat)
        states[size].initialize({field: [ITEMS[field]() for _ in range(size)]})
        times[size]["first dump"].append(microseconds(states[size].dump_checkpoint))
    for _ in range(rounds):
        for size, state in states.items():
            one_round(state, field, times[size])
    rows = []
    for size, state in states.items():
        text = dump_json(state.dump_checkpoint())
        for _ in range(5):
            fresh, stored = StateManager(Chat), json.loads(text)
            gc.collect()
            times[size]["load"].append(
                microseconds(lambda fresh=fresh, stored=stored: fresh.initialize(stored))
            )
        medians = {name: round(statistics.median(found), 1) for name, found in times[size].items()}
        rows.append({"items": field, "size": size, "bytes": len(text), **medians})
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    names = list(rows[0])
    print("microseconds, median")
    print("  ".join(f"{name:>10}" for name in names))
    for row in rows:
        print("  ".join(f"{row[name]:>10,}" if name != "items" else f"{row[name]:>10}" for name in names))
    for field in ITEMS:
        mine = [row for row in rows if row["items"] == field]
        for name in ("append", "read", "dump"):
            ratio = mine[-1][name] / mine[0][name]
            print(f"{field}: {name} at {SIZES[-1]:,} costs {ratio:.2f}x that at {SIZES[0]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--rounds", type=int, default=300)
    options = parser.parse_args()
    rows = [row for field in ITEMS for row in measure(field, options.rounds)]
    show(rows)
    if options.json:
        about = {"python": platform.python_version(), "machine": platform.machine(), "rounds": options.rounds}
        options.json.write_text(json.dumps({**about, "rows": rows}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
