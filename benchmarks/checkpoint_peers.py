"""What a checkpoint costs, beside langgraph's savers, on a chat that grows by one 400-byte message a step.

`make bench`, or `python benchmarks/checkpoint_peers.py [--steps 2000] [--long 20000] [--rounds 3]
[--turn 50] [--json FILE] [--plot FILE.svg] [--only back_ends,written,agents,loops,long]`. Within a round the
stores take turns of 50 steps, so that all meet the same disk; one flush of it is timed at each turn and
stands beside the figures. With ``--turn 1`` each step finds the processor's caches full of eight other
stores' data.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict

import psycopg
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph

import checkpoint_contenders as peers
from checkpoint_contenders import Chat, Contender, message
from jianmu import ReactiveRunner, StateManager, node
from jianmu.memory import PostgresCheckpointer, SqliteCheckpointer
from jianmu.testing.postgres import PostgresServer

Figures = dict[str, Any]


def milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


def race(
    contenders: list[Contender], steps: int, turn: int, folder: Path, marks: list[int]
) -> dict[str, Figures]:
    """Let the stores take turns of `turn` steps; return the figures of each, and of one flush."""
    times: dict[str, list[float]] = defaultdict(list)
    loads: dict[str, list[float]] = defaultdict(list)
    growth: dict[str, dict[int, int]] = defaultdict(dict)
    # How long a load takes depends on how far the last snapshot is, for us and for DeltaChannel; so it is
    # timed at ten places, none of which favours either.
    places = {steps - 1 - steps * number // 23 for number in range(10)}
    descriptor = os.open(folder / f"flush{uuid.uuid4().hex}", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    for first in range(0, steps, turn):
        last = min(first + turn, steps)
        times["one flush"].append(milliseconds(lambda: peers.flush_once(descriptor)))
        for each in contenders:
            for step in range(first, last):
                each.prepare(step)
                times[each.name].append(milliseconds(lambda: each.put(step)))  # noqa: B023 - called at once
            if last in marks:
                growth[each.name][last] = each.disk()
        if places & set(range(first, last)):
            for _ in range(3):
                for each in contenders:
                    loads[each.name].append(milliseconds(partial(load_and_check, each, last)))
    os.close(descriptor)
    figures = {}
    for each in contenders:
        figures[each.name] = summary(times[each.name]) | {
            "disk_mb": each.disk() / 1e6,
            "load_ms": statistics.median(loads[each.name]),
            "load_worst_ms": max(sorted(loads[each.name])[:-3]),
            "durable": each.durable,
            "growth": growth[each.name],
        }
    figures["one flush"] = summary(times["one flush"]) | {"durable": True}
    return figures


def load_and_check(store: Contender, expected: int) -> None:
    check(store.load(), expected)


def check(found: int, expected: int) -> None:
    assert found == expected, f"{found} messages came back, not {expected}"


def summary(times: list[float]) -> Figures:
    end = times[-200:]
    return {
        "total_s": sum(times) / 1e3,
        "end_p50_ms": statistics.median(end),
        "end_p99_ms": sorted(end)[int(len(end) * 0.99)],
    }


def medians(rounds: list[dict[str, Figures]]) -> dict[str, Figures]:
    out: dict[str, Figures] = {}
    for name in rounds[0]:
        out[name] = dict(rounds[-1][name])
        for key, value in rounds[0][name].items():
            if isinstance(value, float):
                out[name][key] = statistics.median(each[name][key] for each in rounds)
    return out


class Databases:
    """A PostgreSQL server of our own, with its default durability, and fresh databases in it."""

    def __init__(self) -> None:
        self.server = PostgresServer(settings={"fsync": "on", "max_wal_size": "8GB"})
        self.server.start()

    def fresh(self) -> str:
        name = f"bench_{uuid.uuid4().hex}"
        with psycopg.connect(self.server.dsn(), autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {name}")
        return self.server.dsn(name)


def back_ends(options: argparse.Namespace, folder: Path, databases: Databases) -> dict[str, Figures]:
    """All stores, the quadratic ones too."""
    rounds = []
    for number in range(options.rounds):
        home = folder / f"round{number}"
        home.mkdir()
        contenders: list[Contender] = [
            peers.jianmu_sqlite(home / "ours-fsync", "fsync"),
            peers.peer_sqlite(home / "peer-full", normal=False),
            peers.peer_sqlite_delta(home / "delta-full", normal=False, frequency=1000),
            peers.jianmu_sqlite(home / "ours-flush", "flush"),
            peers.peer_sqlite(home / "peer-normal", normal=True),
            peers.peer_sqlite_delta(home / "delta-normal", normal=True, frequency=1000),
            peers.jianmu_postgres(databases.fresh()),
            peers.peer_postgres(databases.fresh()),
            peers.peer_memory(),
        ]
        marks = [100, 250, 500, 1000, 2000]
        rounds.append(race(contenders, options.steps, options.turn, home, marks))
        for each in contenders:
            each.close()
    return medians(rounds)


def written(options: argparse.Namespace) -> dict[str, Figures]:
    """What PostgreSQL writes to its log for each store: a server for each, as the log is the server's."""
    figures: dict[str, Figures] = {}
    for make in (peers.jianmu_postgres, peers.peer_postgres):
        databases = Databases()
        dsn = databases.fresh()
        contender = make(dsn)
        with psycopg.connect(dsn, autocommit=True) as admin:
            admin.execute("CHECKPOINT")
        before = peers.wal_position(dsn)
        for step in range(options.steps):
            contender.prepare(step)
            contender.put(step)
        figures[contender.name] = {"wal_mb": (peers.wal_position(dsn) - before) / 1e6}
        contender.close()
        databases.server.remove()
    return figures


def long(options: argparse.Namespace, folder: Path, databases: Databases) -> dict[str, Figures]:
    """The linear stores over a long chat, without a flush a step where there is the choice."""
    contenders: list[Contender] = [
        peers.jianmu_sqlite(folder / "long-ours", "flush"),
        peers.peer_sqlite_delta(folder / "long-delta", normal=True, frequency=1000),
        peers.peer_sqlite_delta(folder / "long-delta-100", normal=True, frequency=100),
        peers.jianmu_postgres(databases.fresh()),
    ]
    if options.long > 5000:
        del contenders[2]  # a snapshot every 100 updates, as is the default, takes gigabytes
    figures = race(contenders, options.long, options.turn, folder, [1000, 2000, 5000, 10_000, 20_000])
    state = len(json.dumps([message(number) for number in range(options.long)]))
    figures["final state"] = {"disk_mb": state / 1e6}
    for each in contenders:
        each.close()
    return figures


def agents(options: argparse.Namespace, folder: Path) -> dict[str, Figures]:
    """32 threads of one process, each with a conversation of its own, on one durable SQLite file.

    On this disk as it is, and again with flushes that take longer, as they do on most disks.
    """
    figures: dict[str, Figures] = {}
    for delay in (0, 500, 1000, 4000) if shutil.which("cc") else (0,):
        target = folder / f"agents{delay}.json"
        command = [sys.executable, __file__, "--only", "threads", "--rounds", str(options.rounds)]
        command += ["--json", str(target), "--folder", str(folder)]
        subprocess.run(
            command, env=os.environ | slow_flush(folder, delay), check=True, stdout=subprocess.DEVNULL
        )
        found = json.loads(target.read_text("utf-8"))["threads"]
        flush = found.pop("one flush")["ms"]
        for name, each in found.items():
            figures[f"{name}, flush {flush:.2f} ms ({delay / 1e3:g} added)"] = each
    return figures


def slow_flush(folder: Path, microseconds: int) -> dict[str, str]:
    """Return the environment under which a flush takes so much longer."""
    if not microseconds:
        return {}
    library = folder / "slow_flush.so"
    source = Path(__file__).with_name("slow_flush.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(source), "-ldl"], check=True)
    return {"LD_PRELOAD": str(library), "SLOW_FLUSH_US": str(microseconds)}


def threads(options: argparse.Namespace, folder: Path) -> dict[str, Figures]:
    """The same in this process."""
    rounds: dict[str, list[float]] = defaultdict(list)
    flushes: list[float] = []
    for number in range(options.rounds):
        store = SqliteCheckpointer(folder / f"agents{number}.db")
        rounds["jianmu sqlite fsync"].append(puts_per_second(partial(ours_put, store)))
        store.close()
        saver, close = peers.sqlite_saver(folder / f"agents-peer{number}", normal=False)
        rounds["SqliteSaver as shipped"].append(puts_per_second(partial(peer_put, saver)))
        close()
        descriptor = os.open(folder / f"flush{number}", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        flushes += [milliseconds(lambda: peers.flush_once(descriptor)) for _ in range(50)]  # noqa: B023 - called at once
        os.close(descriptor)
    figures: dict[str, Figures] = {
        name: {"puts_per_s": statistics.median(each)} for name, each in rounds.items()
    }
    return figures | {"one flush": {"ms": statistics.median(flushes)}}


def puts_per_second(make: Callable[[str], Callable[[int], None]], seconds: float = 3.0) -> float:
    counts = [0] * 32
    deadline = time.perf_counter() + seconds

    def work(index: int) -> None:
        put = make(f"agent {index}")
        while time.perf_counter() < deadline:
            put(counts[index])
            counts[index] += 1

    workers = [threading.Thread(target=work, args=(index,)) for index in range(32)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) / seconds


def ours_put(store: SqliteCheckpointer, name: str) -> Callable[[int], None]:
    return lambda step: store.save_checkpoint(name, step, {"text": f"{step} " * 10 + "x" * 950})


def peer_put(saver: Any, name: str) -> Callable[[int], None]:
    config: dict[str, Any] = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}

    def put(step: int) -> None:
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"text": f"{step} " * 10 + "x" * 950}
        checkpoint["channel_versions"] = {"text": step}
        saver.put(config, checkpoint, {"source": "loop", "step": step, "parents": {}}, {"text": step})

    return put


# Through the engines: our runner (update, dump, save) and langgraph's loop (node, put_writes, put).


def loops(options: argparse.Namespace, folder: Path, databases: Databases) -> dict[str, Figures]:
    """Whole runs in turns: async steps beside async ones, plain ones beside plain ones."""
    for number in range(options.steps + 1):
        message(number)
    rounds = []
    for number in range(options.rounds):
        home = folder / f"loops{number}"
        home.mkdir()
        figures: dict[str, Figures] = {}
        for durability in ("fsync", "flush"):
            normal = durability == "flush"
            peer = "SqliteSaver " + ("NORMAL" if normal else "as shipped")
            for kind, leaf in (("async", say_later), ("plain", say_at_once)):
                store = SqliteCheckpointer(home / f"{durability}-{kind}.db", durability=durability)  # type: ignore[arg-type]
                name = f"{kind} steps: runner, jianmu sqlite {durability}"
                figures[name] = asyncio.run(our_loop(store, options.steps, leaf))
                store.close()
                for delta in (False, True):
                    name = f"{kind} steps: langgraph, {peer}{' + DeltaChannel' if delta else ''}"
                    target = home / f"peer-{durability}-{kind}-{delta}"
                    if kind == "async":
                        figures[name] = asyncio.run(peer_async(target, normal, options.steps, delta=delta))
                    else:
                        saver, close = peers.sqlite_saver(target, normal=normal)
                        figures[name] = peer_plain(saver, options.steps, delta=delta)
                        close()
        postgres = PostgresCheckpointer(databases.fresh())
        figures["plain steps: runner, jianmu postgres"] = asyncio.run(
            our_loop(postgres, options.steps, say_at_once)
        )
        postgres.close()
        saver, close = peers.postgres_saver(databases.fresh())
        figures["plain steps: langgraph, PostgresSaver"] = peer_plain(saver, options.steps)
        close()
        rounds.append(figures)
    return medians(rounds)


Leaf = Callable[[list[float]], Any]


def say_later(stamps: list[float]) -> Any:
    @node
    async def say(ctx: Any) -> dict[str, Any]:
        stamps.append(time.perf_counter())
        await asyncio.sleep(0)  # a chat waits for its model
        return {"messages": [message(len(stamps))]}

    return say()


def say_at_once(stamps: list[float]) -> Any:
    @node
    def say(ctx: Any) -> dict[str, Any]:
        stamps.append(time.perf_counter())
        return {"messages": [message(len(stamps))]}

    return say()


async def our_loop(store: Any, steps: int, leaf: Leaf) -> Figures:
    import py_trees

    stamps: list[float] = []
    root = py_trees.decorators.Repeat(name="chat", child=leaf(stamps), num_success=steps)
    runner = ReactiveRunner(root, StateManager(Chat))
    runner.livelock_after = steps + 1
    result = await runner.run(checkpointer=store, thread_id="chat", checkpoint_interval=1)
    check(len(result.state.messages), steps)
    return between(stamps)


def peer_graph(say: Any, stamps: list[float], steps: int, *, delta: bool) -> Any:
    def add(old: list[Any], new: Any) -> list[Any]:
        return old + (new if not delta else [item for each in new for item in each])

    channel: Any = DeltaChannel(add, list, snapshot_frequency=1000) if delta else add
    schema = TypedDict("Chat", {"messages": Annotated[list, channel]})  # type: ignore[misc] # noqa: UP013
    graph = StateGraph(schema)
    graph.add_node("say", say)
    graph.add_edge(START, "say")
    graph.add_conditional_edges("say", lambda state: END if len(stamps) >= steps else "say")
    return graph


def peer_plain(saver: Any, steps: int, *, delta: bool = False) -> Figures:
    stamps: list[float] = []

    def say(state: Any) -> dict[str, Any]:
        stamps.append(time.perf_counter())
        return {"messages": [message(len(stamps))]}

    compiled = peer_graph(say, stamps, steps, delta=delta).compile(checkpointer=saver)
    config: Any = {"configurable": {"thread_id": f"loop {delta}"}, "recursion_limit": steps + 10}
    compiled.invoke({"messages": []}, config, durability="sync")
    check(len(compiled.get_state(config).values["messages"]), steps)
    return between(stamps)


async def peer_async(folder: Path, normal: bool, steps: int, *, delta: bool) -> Figures:
    stamps: list[float] = []

    async def say(state: Any) -> dict[str, Any]:
        stamps.append(time.perf_counter())
        await asyncio.sleep(0)
        return {"messages": [message(len(stamps))]}

    folder.mkdir()
    async with AsyncSqliteSaver.from_conn_string(str(folder / "peer.db")) as saver:
        if normal:
            await saver.conn.execute("PRAGMA synchronous = NORMAL")
        await saver.setup()
        compiled = peer_graph(say, stamps, steps, delta=delta).compile(checkpointer=saver)
        config: Any = {"configurable": {"thread_id": "loop"}, "recursion_limit": steps + 10}
        await compiled.ainvoke({"messages": []}, config, durability="sync")
        state = await compiled.aget_state(config)
        check(len(state.values["messages"]), steps)
    return between(stamps)


def between(stamps: list[float]) -> Figures:
    return summary([(after - before) * 1e3 for before, after in itertools.pairwise(stamps)])


def show(title: str, figures: dict[str, Figures]) -> None:
    names = [
        key for key in dict.fromkeys(key for each in figures.values() for key in each) if key != "growth"
    ]
    print(f"\n{title}\n{'':<58}" + "".join(f"{name:>12}" for name in names))
    for contender, each in figures.items():
        cells = (each.get(name, "") for name in names)
        print(
            f"{contender:<58}"
            + "".join(f"{c:>12.3f}" if isinstance(c, float) else f"{c!s:>12}" for c in cells)
        )


def plot(figures: dict[str, Figures], target: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    canvas, axes = pyplot.subplots(figsize=(7, 4.2))
    for name in (
        "SqliteSaver as shipped",
        "PostgresSaver",
        "SqliteSaver+Delta/1000",
        "jianmu sqlite fsync",
        "jianmu postgres",
    ):
        growth = figures[name]["growth"]
        style = "-o" if name.startswith("jianmu") else "--s"
        axes.plot(list(growth), [size / 1e6 for size in growth.values()], style, label=name)
    axes.set(xlabel="steps (one message of 400 bytes each)", ylabel="MB on disk", yscale="log", xscale="log")
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    canvas.tight_layout()
    canvas.savefig(target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--long", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turn", type=int, default=50, help="steps of one store before the next one's turn")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--plot", type=Path, help="draw how the stores grow")
    parser.add_argument("--folder", type=Path, help="measure on this disk")
    parser.add_argument("--only", default="back_ends,written,agents,loops,long")
    options = parser.parse_args()
    chosen, results = options.only.split(","), {}
    databases = Databases() if chosen != ["threads"] else None
    try:
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            folder = Path(name)
            parts: dict[str, tuple[str, Callable[[], dict[str, Figures]]]] = {
                "back_ends": (
                    f"back ends alone, {options.steps} steps, medians of {options.rounds} rounds in turns",
                    lambda: back_ends(options, folder, databases),
                ),
                "written": ("written to PostgreSQL's log", lambda: written(options)),
                "agents": ("32 threads on one SQLite file, 1 KB, durable", lambda: agents(options, folder)),
                "threads": ("the same, in one process", lambda: threads(options, folder)),
                "loops": (
                    f"whole runs of {options.steps} steps, time from one step to the next",
                    lambda: loops(options, folder, databases),
                ),
                "long": (f"a chat of {options.long} steps", lambda: long(options, folder, databases)),
            }
            for part in chosen:
                title, measure = parts[part]
                results[part] = measure()
                show(title, results[part])
    finally:
        if databases is not None:
            databases.server.remove()
    if options.json:
        options.json.write_text(json.dumps(results, indent=1), "utf-8")
    if options.plot and "back_ends" in results:
        plot(results["back_ends"], options.plot)


if __name__ == "__main__":
    main()
