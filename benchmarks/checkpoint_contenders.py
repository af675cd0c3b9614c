"""The stores that `checkpoint_peers.py` measures, each behind the same four calls."""

from __future__ import annotations

import functools
import operator
import os
import pickle
import random
import sqlite3
from pathlib import Path
from typing import Annotated, Any

import psycopg
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.checkpoint.sqlite import SqliteSaver
from psycopg.rows import dict_row
from pydantic import BaseModel

from jianmu import StateManager
from jianmu.memory import PostgresCheckpointer, SqliteCheckpointer

Message = dict[str, str]


@functools.cache
def message(number: int) -> Message:
    """Return about 400 bytes of chat as JSON; made once, so that it costs no contender anything."""
    letters = random.Random(number)
    words = ("".join(letters.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(52))
    return {"role": "user" if number % 2 else "assistant", "content": " ".join(words)}


class Chat(BaseModel):
    """The state of the chat."""

    messages: Annotated[list[dict[str, str]], operator.add] = []


class Contender:
    """One store with one thread.

    Attributes:
        name: As printed.
        durable: Whether a put waits for the disk.
    """

    def __init__(self, name: str, *, durable: bool) -> None:
        self.name = name
        self.durable = durable
        self.lasting = True

    def prepare(self, step: int) -> None:
        """Do what is not the store's work: change the state."""

    def put(self, step: int) -> None:
        """Save one step."""

    def load(self) -> int:
        """Read the newest state; return how many messages it has."""
        raise NotImplementedError

    def disk(self) -> int:
        """Return the bytes that the store takes."""
        raise NotImplementedError

    def close(self) -> None:
        """Free everything."""


class Jianmu(Contender):
    """One of our checkpointers, with the lease that a runner would hold."""

    def __init__(self, name: str, store: Any, size: Any, *, durable: bool) -> None:
        super().__init__(name, durable=durable)
        self.store, self.disk = store, size
        self.lease = store.acquire("chat", ttl=3600.0)
        self.manager = StateManager(Chat)
        self.manager.initialize()

    def prepare(self, step: int) -> None:
        self.manager.update({"messages": [message(step)]})
        self.dump = self.manager.dump_checkpoint()

    def put(self, step: int) -> None:
        self.store.save_checkpoint("chat", step, self.dump, {"0": "RUNNING"}, {"ticks": step})

    def load(self) -> int:
        return len(self.store.get_checkpoint("chat")["state"]["messages"])

    def close(self) -> None:
        self.lease.release()
        self.store.close()


class Saver(Contender):
    """A saver of langgraph, called as its loop calls it: the whole channel in each checkpoint."""

    def __init__(self, name: str, saver: Any, size: Any, *, durable: bool, close: Any = None) -> None:
        super().__init__(name, durable=durable)
        self.saver, self.disk = saver, size
        self.close = close or (lambda: None)
        self.messages: list[Message] = []
        self.config: dict[str, Any] = {"configurable": {"thread_id": "chat", "checkpoint_ns": ""}}

    def prepare(self, step: int) -> None:
        self.messages.append(message(step))

    def put(self, step: int) -> None:
        self._put(step, {"messages": self.messages}, {"messages": step + 1})

    def _put(self, step: int, values: dict[str, Any], new_versions: dict[str, Any]) -> None:
        checkpoint = empty_checkpoint()
        checkpoint["id"] = str(uuid6(clock_seq=step))
        checkpoint["channel_values"] = values
        checkpoint["channel_versions"] = {"messages": step + 1}
        metadata: Any = {"source": "loop", "step": step, "parents": {}}
        self.config = self.saver.put(self.config, checkpoint, metadata, new_versions)

    def load(self) -> int:
        found = self.saver.get_tuple({"configurable": {"thread_id": "chat", "checkpoint_ns": ""}})
        return len(found.checkpoint["channel_values"]["messages"])


class Delta(Saver):
    """A saver of langgraph under its opt-in DeltaChannel: the writes, and a snapshot now and then."""

    def __init__(self, name: str, saver: Any, size: Any, *, frequency: int, **options: Any) -> None:
        super().__init__(name, saver, size, **options)
        self.frequency = frequency

    def put(self, step: int) -> None:
        if step:
            self.saver.put_writes(self.config, [("messages", [self.messages[-1]])], str(uuid6()))
        if (step + 1) % self.frequency == 0 or step == 0:
            self._put(step, {"messages": _DeltaSnapshot(list(self.messages))}, {"messages": step + 1})
        else:
            self._put(step, {}, {})

    def load(self) -> int:
        config = {"configurable": {"thread_id": "chat", "checkpoint_ns": ""}}
        found = self.saver.get_tuple(config)
        spec = DeltaChannel(lambda old, new: old + [item for each in new for item in each], list)
        kept = found.checkpoint["channel_values"].get("messages")
        if kept is not None:
            return len(spec.from_checkpoint(kept).get())
        history = self.saver.get_delta_channel_history(config=found.config, channels=["messages"])["messages"]
        channel = spec.from_checkpoint(history.get("seed"))
        channel.replay_writes(history["writes"])
        return len(channel.get())


def folder_size(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.iterdir())


def sqlite_saver(folder: Path, *, normal: bool) -> tuple[SqliteSaver, Any]:
    """Return a SqliteSaver as shipped (WAL, FULL), or with synchronous=NORMAL, and what closes it."""
    folder.mkdir()
    connection = sqlite3.connect(folder / "peer.db", check_same_thread=False)
    if normal:
        connection.execute("PRAGMA synchronous = NORMAL")
    saver = SqliteSaver(connection)
    saver.setup()
    return saver, connection.close


def postgres_saver(dsn: str) -> tuple[PostgresSaver, Any]:
    """Return a PostgresSaver on a connection of its own, and what closes it."""
    connection = psycopg.connect(dsn, autocommit=True, prepare_threshold=0, row_factory=dict_row)
    saver = PostgresSaver(connection)  # type: ignore[arg-type]
    saver.setup()
    return saver, connection.close


def database_size(dsn: str) -> int:
    """Return the bytes of a PostgreSQL database."""
    with psycopg.connect(dsn) as connection:
        found = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    assert found is not None
    return int(found[0])


def wal_position(dsn: str) -> int:
    """Return how much a PostgreSQL server has written to its log so far."""
    with psycopg.connect(dsn) as connection:
        found = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
    assert found is not None
    return int(found[0])


def jianmu_sqlite(folder: Path, durability: Any) -> Jianmu:
    """Return our SQLite store in a folder of its own."""
    store = SqliteCheckpointer(folder / "ours.db", durability=durability)
    name = f"jianmu sqlite {durability}"
    return Jianmu(name, store, lambda: folder_size(folder), durable=durability == "fsync")


def jianmu_postgres(dsn: str) -> Jianmu:
    """Return our PostgreSQL store in a database of its own."""
    empty = database_size(dsn)
    store = PostgresCheckpointer(dsn)
    return Jianmu("jianmu postgres", store, lambda: database_size(dsn) - empty, durable=True)


def peer_sqlite(folder: Path, *, normal: bool) -> Saver:
    """Return SqliteSaver in a folder of its own."""
    saver, close = sqlite_saver(folder, normal=normal)
    name = "SqliteSaver NORMAL" if normal else "SqliteSaver as shipped"
    return Saver(name, saver, lambda: folder_size(folder), durable=not normal, close=close)


def peer_sqlite_delta(folder: Path, *, normal: bool, frequency: int) -> Delta:
    """Return SqliteSaver under DeltaChannel in a folder of its own."""
    saver, close = sqlite_saver(folder, normal=normal)
    name = f"SqliteSaver+Delta/{frequency}{' NORMAL' if normal else ''}"
    size = lambda: folder_size(folder)  # noqa: E731 - a name for one use
    return Delta(name, saver, size, frequency=frequency, durable=not normal, close=close)


def peer_postgres(dsn: str) -> Saver:
    """Return PostgresSaver in a database of its own."""
    empty = database_size(dsn)
    saver, close = postgres_saver(dsn)
    return Saver("PostgresSaver", saver, lambda: database_size(dsn) - empty, durable=True, close=close)


def peer_memory() -> Saver:
    """Return InMemorySaver; its size is that of what it holds, pickled."""
    saver = InMemorySaver()
    size = lambda: len(pickle.dumps((dict(saver.blobs), {k: dict(v) for k, v in saver.storage.items()})))  # noqa: E731
    return Saver("InMemorySaver (RAM)", saver, size, durable=False)


def flush_once(descriptor: int) -> None:
    """Append 400 bytes and flush them: the floor of any durable save."""
    os.write(descriptor, b"x" * 400)
    os.fdatasync(descriptor)
