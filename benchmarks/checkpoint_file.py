"""What a save and a load of FileCheckpointer cost, against the state's size and the file's.

`python benchmarks/checkpoint_file.py [--json FILE] [--folder DIR] [--rounds N] [--huge]`. Rounds are
interleaved, figures are medians, and beside them stands what one flush of this disk cost meanwhile.
"""

import argparse
import json
import operator
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel

from jianmu import StateManager
from jianmu.memory import FileCheckpointer

MESSAGE = {"role": "user", "content": "x" * 380}


class Chat(BaseModel):
    messages: Annotated[list[dict[str, str]], operator.add] = []


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def flush(folder: Path) -> float:
    """Return what it costs to append 400 bytes and flush them."""
    descriptor = os.open(folder / "flush", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(descriptor, b"x" * 400)
        return seconds(lambda: os.fsync(descriptor))
    finally:
        os.close(descriptor)


def by_state_size(folder: Path, rounds: int) -> list[dict[str, Any]]:
    rows = []
    for messages in (0, 1, 10, 100, 1_000, 10_000):
        manager = StateManager(Chat)
        manager.initialize({"messages": [MESSAGE] * messages})
        times: dict[str, list[float]] = defaultdict(list)
        stores = {
            kind: FileCheckpointer(folder / f"{kind}{messages}", durability=kind)
            for kind in ("flush", "fsync")
        }
        leases = [store.acquire("t") for store in stores.values()]
        for step in range(rounds):
            manager.update({"messages": [MESSAGE]})
            for kind, store in stores.items():
                dump = manager.dump_checkpoint()
                times[f"save_{kind}"].append(seconds(partial(store.save_checkpoint, "t", step, dump)))
            times["load"].append(seconds(partial(stores["flush"].get_checkpoint, "t")))
            times["disk_flush"].append(flush(folder))
        size = stores["flush"].list_checkpoints("t", limit=1)[0].size
        rows.append({"record_bytes": size, **{name: statistics.median(each) for name, each in times.items()}})
        for lease in leases:
            lease.release()
        for store in stores.values():
            store.delete_thread("t")
    return rows


def by_file_size(folder: Path, rounds: int, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    stores = {}
    for size in sizes:
        store = FileCheckpointer(folder / f"size{size}", durability="flush")
        store.save_checkpoint("t", 1, {"text": "x" * 50_000})
        path = folder / f"size{size}" / "t.jsonl"
        block = path.read_bytes() * 20
        with path.open("ab") as file:
            for _ in range(size // len(block)):
                file.write(block)
        stores[size] = (store, path)
    loads: dict[int, list[float]] = defaultdict(list)
    saves: dict[int, list[float]] = defaultdict(list)
    for step in range(2, rounds + 2):
        for size, (store, _) in stores.items():
            loads[size].append(seconds(partial(store.get_checkpoint, "t")))
            saves[size].append(seconds(partial(store.save_checkpoint, "t", step, {"text": "x" * 50_000})))
    rows = []
    for size, (_, path) in stores.items():
        rows.append(
            {
                "file_bytes": path.stat().st_size,
                "load": statistics.median(loads[size]),
                "save_flush": statistics.median(saves[size]),
            }
        )
        path.unlink()
    return rows


def show(title: str, rows: list[dict[str, Any]]) -> None:
    print(f"\n{title}")
    names = list(rows[0])
    print("".join(f"{name if 'bytes' in name else name + ' ms':>16}" for name in names))
    for row in rows:
        print("".join(f"{row[n]:>16,}" if "bytes" in n else f"{row[n] * 1e3:>16.3f}" for n in names))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--folder", type=Path, help="measure on this disk")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--huge", action="store_true", help="add a file of 1 GB")
    options = parser.parse_args()
    sizes = (1_000_000, 10_000_000, 100_000_000) + ((1_000_000_000,) if options.huge else ())
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        states = by_state_size(Path(folder), options.rounds)
        files = by_file_size(Path(folder), options.rounds, sizes)
    show("against the size of the state (a chat that grows by one message of 400 bytes a step)", states)
    show("against the size of the file (records of 50 kB)", files)
    if options.json:
        options.json.write_text(json.dumps({"state": states, "file": files}, indent=1), "utf-8")


if __name__ == "__main__":
    main()
