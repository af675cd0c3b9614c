"""The tables of the engine and the statements that SQLite and PostgreSQL share.

Every table leads with the space (one namespace), so that a search costs what its namespace holds. An
item's id is ``space << 32 | number``; its passages have consecutive slots, counted per space and never
used twice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from jianmu.memory.long_term.engine.items import Row
from jianmu.retrieval.bm25 import Posting

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Database", "Space", "Tables", "Version"]

_BRIEF = "id, uid, space, slot, passages, length, before, after, session, speaker, time, day, dated, expires"
_FULL = f"{_BRIEF}, content, metadata, digest, created, updated, count"
_AT_ONCE = 400
"""Values in one IN list."""


@dataclass(slots=True)
class Space:
    """One namespace and its counters.

    Attributes:
        items: Items ever stored; the next one's number.
        slots: Slots ever used; the next passage's slot.
        documents: Passages in the word index.
        words: Their summed length.
        epoch: Grows when slots are given anew.
    """

    id: int
    path: str
    items: int
    slots: int
    documents: int
    words: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Version:
    """A text that was superseded; it held from `time` until `until`."""

    uid: str
    content: str
    metadata: str
    time: float
    until: float


T = TypeVar("T")


class Database(Protocol):
    """Runs work on the tables inside a transaction."""

    def read(self, work: Callable[[Tables], T]) -> T:
        """Run `work` on one consistent view."""
        ...

    def write(self, work: Callable[[Tables], T]) -> T:
        """Run `work`, all or nothing, durable when this returns; it may be run again after a conflict."""
        ...

    def scrub(self) -> None:
        """Leave no trace of what was deleted in the files."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


class Tables(ABC):
    """Statements inside one transaction; `?` stands for a value."""

    space_beside_ids = "space"
    """How the space is compared where a list of ids chooses the rows."""

    # -- what each database does in its own way -------------------------------------------------------

    @abstractmethod
    def all(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Every row of an answer."""

    @abstractmethod
    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; how many rows it changed."""

    @abstractmethod
    def run_many(self, sql: str, values: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each tuple of values."""

    @abstractmethod
    def claim(self, path: str) -> Space:
        """The space of a path, made if need be, held against other writers until the transaction ends."""

    @abstractmethod
    def postings(self, space: Space, terms: Iterable[str]) -> dict[str, list[bytes]]:
        """Packed postings of the terms that occur."""

    @abstractmethod
    def add_postings(self, space: Space, postings: Mapping[str, Sequence[Posting]]) -> None:
        """Add postings; their slots are above every slot in the index."""

    @abstractmethod
    def remove_postings(self, space: Space, slots: Mapping[int, Iterable[str]]) -> None:
        """Take these slots out of the postings of these terms."""

    @abstractmethod
    def add_passages(self, space: Space, passages: Sequence[tuple[int, int, bytes | None]]) -> None:
        """Add (slot, item id, quantized vector or None)."""

    @abstractmethod
    def passage_vectors(self, space: Space, first: int, count: int) -> list[bytes | None]:
        """The quantized vectors of consecutive slots."""

    @abstractmethod
    def nearest(
        self, space: Space, query: npt.NDArray[np.float32], count: int
    ) -> tuple[list[int], list[float]]:
        """The `count` nearest slots and their cosines, best first; fewer only if there are fewer."""

    @abstractmethod
    def cosines(self, space: Space, query: npt.NDArray[np.float32], slots: Sequence[int]) -> list[float]:
        """Cosines of these slots, -1 where there is no vector."""

    @abstractmethod
    def vectors(self, space: Space, slots: Sequence[int]) -> npt.NDArray[np.float32]:
        """Vectors of these slots, zero where there is none."""

    @abstractmethod
    def forget_slots(self, space: Space, slots: Sequence[int]) -> None:
        """These slots turned out to be gone."""

    def reset_vectors(self, dimension: int | None) -> None:  # noqa: B027 - nothing to do is the usual case
        """Make room for vectors of another length; every vector has been or will be removed."""

    # -- settings and spaces --------------------------------------------------------------------------

    def setting(self, name: str) -> str | None:
        """A stored setting."""
        found = self.all("SELECT value FROM memory_setting WHERE name = ?", (name,))
        return None if not found else str(found[0][0])

    def set_setting(self, name: str, value: str | None) -> None:
        """Store or drop a setting."""
        self.run("DELETE FROM memory_setting WHERE name = ?", (name,))
        if value is not None:
            self.run("INSERT INTO memory_setting (name, value) VALUES (?, ?)", (name, value))

    def spaces(self, path: str, *, deep: bool) -> list[Space]:
        """The space of exactly this path, or of every path below it, by whole segments."""
        columns = "SELECT id, path, items, slots, documents, words, epoch FROM memory_space"
        if not deep:
            found = self.all(f"{columns} WHERE path = ?", (path,))
        elif not path:
            found = self.all(f"{columns} ORDER BY path")
        else:  # a path ends in a comma; "-" is the character after it
            bounds = (path, path[:-1] + "-")
            found = self.all(f"{columns} WHERE path >= ? AND path < ? ORDER BY path", bounds)
        return [Space(*row) for row in found]

    def save_space(self, space: Space) -> None:
        """Write the counters back."""
        self.run(
            "UPDATE memory_space SET items = ?, slots = ?, documents = ?, words = ?, epoch = ? WHERE id = ?",
            (space.items, space.slots, space.documents, space.words, space.epoch, space.id),
        )

    # -- items ----------------------------------------------------------------------------------------

    def rows(self, space: Space, ids: Iterable[int], *, full: bool = False) -> list[Row]:
        """Items by id."""
        columns = _FULL if full else _BRIEF
        return [
            Row(*row)
            for part in _parts(ids)
            for row in self.all(
                f"SELECT {columns} FROM memory_item"  # noqa: S608 - names and marks only
                f" WHERE {self.space_beside_ids} = ? AND id IN ({_marks(part)})",
                (space.id, *part),
            )
        ]

    def items_at(self, space: Space, slots: Iterable[int]) -> dict[int, int]:
        """For each slot that is in use, the item's id."""
        return {
            slot: item
            for part in _parts(slots)
            for slot, item in self.all(
                f"SELECT slot, item FROM memory_passage WHERE space = ? AND slot IN ({_marks(part)})",  # noqa: S608 - marks only
                (space.id, *part),
            )
        }

    def row(self, space: Space, column: str, value: Any) -> Row | None:
        """The full item with this uid or digest."""
        assert column in ("uid", "digest", "id")
        sql = f"SELECT {_FULL} FROM memory_item WHERE space = ? AND {column} = ?"  # noqa: S608 - checked above
        found = self.all(sql, (space.id, value))
        return Row(*found[0]) if found else None

    def row_of_key(self, space: Space, key: str) -> Row | None:
        """The full item that a key names."""
        found = self.all("SELECT item FROM memory_key WHERE space = ? AND key = ?", (space.id, key))
        return self.row(space, "id", found[0][0]) if found else None

    def page(self, space: Space, *, now: float, limit: int | None, offset: int = 0) -> list[Row]:
        """Live items, newest first."""
        sql = (
            f"SELECT {_FULL} FROM memory_item WHERE space = ? AND (expires IS NULL OR expires > ?)"  # noqa: S608 - no value
            " ORDER BY id DESC LIMIT ? OFFSET ?"
        )
        most = 2**62 if limit is None else limit
        return [Row(*row) for row in self.all(sql, (space.id, now, most, offset))]

    def everything(self, space: Space, above: int, limit: int) -> list[Row]:
        """Items with an id above `above`, in order of id."""
        sql = f"SELECT {_FULL} FROM memory_item WHERE space = ? AND id > ? ORDER BY id LIMIT ?"  # noqa: S608 - no value
        return [Row(*row) for row in self.all(sql, (space.id, above, limit))]

    def expired(self, space: Space, now: float, limit: int) -> list[Row]:
        """Items past their time."""
        sql = f"SELECT {_FULL} FROM memory_item WHERE space = ? AND expires <= ? LIMIT ?"  # noqa: S608 - no value
        return [Row(*row) for row in self.all(sql, (space.id, now, limit))]

    def insert_row(self, row: Row) -> None:
        """Store a new item."""
        self.run(f"INSERT INTO memory_item ({_FULL}) VALUES ({_marks(range(20))})", _values(row))  # noqa: S608 - marks

    def update_row(self, row: Row) -> None:
        """Store an item anew."""
        columns = ", ".join(f"{name} = ?" for name in _FULL.split(", ")[3:])
        sql = f"UPDATE memory_item SET {columns} WHERE space = ? AND id = ?"  # noqa: S608 - column names
        self.run(sql, (*_values(row)[3:], row.space, row.id))

    def delete_row(self, row: Row) -> None:
        """Remove an item with its keys and its history."""
        for sql, value in (
            ("DELETE FROM memory_key WHERE space = ? AND item = ?", row.id),
            ("DELETE FROM memory_version WHERE space = ? AND uid = ?", row.uid),
            ("DELETE FROM memory_staged WHERE space = ? AND digest = ?", row.digest),
            ("DELETE FROM memory_item WHERE space = ? AND id = ?", row.id),
        ):
            self.run(sql, (row.space, value))

    def set_link(self, space: Space, id: int, side: str, other: int | None) -> None:
        """Say which item stands before or after another in its session."""
        assert side in ("before", "after")
        self.run(f"UPDATE memory_item SET {side} = ? WHERE space = ? AND id = ?", (other, space.id, id))  # noqa: S608 - checked

    def last_in_session(self, space: Space, session: str) -> int | None:
        """The id of the newest item of a session."""
        sql = "SELECT id FROM memory_item WHERE space = ? AND session = ? ORDER BY id DESC LIMIT 1"
        found = self.all(sql, (space.id, session))
        return int(found[0][0]) if found else None

    def remove_passages(self, space: Space, first: int, count: int) -> None:
        """Remove consecutive slots."""
        sql = "DELETE FROM memory_passage WHERE space = ? AND slot >= ? AND slot < ?"
        self.run(sql, (space.id, first, first + count))

    def clear(self, space: Space) -> int:
        """Remove everything of a space and the space; how many items there were."""
        count = self.run("DELETE FROM memory_item WHERE space = ?", (space.id,))
        for table in ("key", "version", "passage", "posting", "staged"):
            self.run(f"DELETE FROM memory_{table} WHERE space = ?", (space.id,))  # noqa: S608 - literal names
        self.run("DELETE FROM memory_space WHERE id = ?", (space.id,))
        return count

    # -- keys and history -----------------------------------------------------------------------------

    def keys(self, space: Space, ids: Iterable[int]) -> dict[int, list[str]]:
        """The keys of items."""
        found: dict[int, list[str]] = {}
        for part in _parts(ids):
            sql = (
                f"SELECT item, key FROM memory_key WHERE space = ? AND item IN ({_marks(part)}) ORDER BY key"  # noqa: S608 - marks
            )
            for item, key in self.all(sql, (space.id, *part)):
                found.setdefault(item, []).append(key)
        return found

    def put_key(self, space: Space, key: str, id: int) -> None:
        """Let a key name an item."""
        self.drop_key(space, key)
        self.run("INSERT INTO memory_key (space, key, item) VALUES (?, ?, ?)", (space.id, key, id))

    def drop_key(self, space: Space, key: str) -> None:
        """Let a key name nothing."""
        self.run("DELETE FROM memory_key WHERE space = ? AND key = ?", (space.id, key))

    def add_version(self, space: Space, uid: str, row: Row, until: float) -> None:
        """Keep the text of `row` in the history of `uid`."""
        number = self.all(
            "SELECT coalesce(max(number), -1) + 1 FROM memory_version WHERE space = ? AND uid = ?",
            (space.id, uid),
        )[0][0]
        self.run(
            "INSERT INTO memory_version (space, uid, number, content, metadata, time, until)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (space.id, uid, number, row.content, row.metadata, row.time, until),
        )

    def versions(self, space: Space, uid: str) -> list[Version]:
        """What an item said before, oldest first."""
        sql = (
            "SELECT uid, content, metadata, time, until FROM memory_version"
            " WHERE space = ? AND uid = ? ORDER BY number"
        )
        return [Version(*row) for row in self.all(sql, (space.id, uid))]

    def versions_at(self, space: Space, when: float, limit: int) -> list[Version]:
        """Superseded texts that held at `when`, newest first."""
        sql = (
            "SELECT uid, content, metadata, time, until FROM memory_version"
            " WHERE space = ? AND time <= ? AND until > ? ORDER BY time DESC LIMIT ?"
        )
        return [Version(*row) for row in self.all(sql, (space.id, when, when, limit))]


def _values(row: Row) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in _FULL.split(", "))


def _marks(values: Sequence[Any] | range) -> str:
    return ", ".join("?" * len(values))


def _parts(values: Iterable[Any]) -> Iterator[list[Any]]:
    everything = list(values)
    for start in range(0, len(everything), _AT_ONCE):
        yield everything[start : start + _AT_ONCE]
