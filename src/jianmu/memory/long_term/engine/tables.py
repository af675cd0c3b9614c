"""The tables of the engine and the statements that SQLite and PostgreSQL share.

Every table leads with the space (one namespace), so that a search costs what its namespace holds. An
item's id is ``space << 32 | number``; its passages have consecutive slots, counted per space and never
used twice.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from jianmu.memory.long_term.engine.history_tables import HistoryTables, Version
from jianmu.memory.long_term.engine.items import Row
from jianmu.memory.long_term.engine.segments import pack_segments
from jianmu.memory.long_term.engine.spaces import SELECT_SPACE, Space, space_of
from jianmu.memory.long_term.engine.statements import marks, parts
from jianmu.memory.long_term.engine.token_tables import TokenTables
from jianmu.memory.long_term.engine.word_tables import WordTables

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["FIRST_FORMAT", "Database", "Space", "Tables", "Version"]

FIRST_FORMAT = (
    "this memory was made before jianmu's first release, with a word index that is no longer read: list() it"
    " with the version that made it, and record_many() the result into a new one"
)
"""Said of tables of version 1."""

_BRIEF = (
    "id, uid, space, slot, passages, length, before, after, session, speaker, time, day, dated, expires,"
    " unspaced"
)
_FULL = f"{_BRIEF}, content, metadata, digest, created, updated, count, crc"


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


class Tables(WordTables, TokenTables, HistoryTables):
    """Statements inside one transaction; `?` stands for a value."""

    space_beside_ids = "space"
    """How the space is compared where a list of ids chooses the rows."""

    # -- what each database does in its own way -------------------------------------------------------

    @abstractmethod
    def claim(self, path: str) -> Space:
        """The space of a path, made if need be, held against other writers until the transaction ends."""

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

    def reset_vectors(self, dimension: int | None) -> None:
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
        if not deep:
            found = self.all(f"{SELECT_SPACE} WHERE path = ?", (path,))
        elif not path:
            found = self.all(f"{SELECT_SPACE} ORDER BY path")
        else:  # a path ends in a comma; "-" is the character after it
            bounds = (path, path[:-1] + "-")
            found = self.all(f"{SELECT_SPACE} WHERE path >= ? AND path < ? ORDER BY path", bounds)
        return [space_of(row) for row in found]

    def save_space(self, space: Space) -> None:
        """Write the counters back."""
        self.run(
            "UPDATE memory_space SET items = ?, slots = ?, documents = ?, words = ?, epoch = ?, segments = ?"
            " WHERE id = ?",
            (
                space.items, space.slots, space.documents, space.words, space.epoch,
                pack_segments(space.segments), space.id,
            ),
        )  # fmt: skip

    # -- items ----------------------------------------------------------------------------------------

    def rows(self, space: Space, ids: Iterable[int], *, full: bool = False) -> list[Row]:
        """Items by id."""
        columns = _FULL if full else _BRIEF
        return [
            Row(*row)
            for part in parts(ids)
            for row in self.all(
                f"SELECT {columns} FROM memory_item"  # noqa: S608 - names and marks only
                f" WHERE {self.space_beside_ids} = ? AND id IN ({marks(part)})",
                (space.id, *part),
            )
        ]

    def contents(self, space: Space, ids: Iterable[int]) -> dict[int, str]:
        """The texts of items, by id."""
        return {
            id: content
            for part in parts(ids)
            for id, content in self.all(
                "SELECT id, content FROM memory_item"  # noqa: S608 - names and marks only
                f" WHERE {self.space_beside_ids} = ? AND id IN ({marks(part)})",
                (space.id, *part),
            )
        }

    def rows_at(self, space: Space, slots: Iterable[int]) -> dict[int, Row]:
        """For each slot that is in use, the item."""
        columns = ", ".join(f"i.{name}" for name in _BRIEF.split(", "))
        beside = self.space_beside_ids.replace("space", "i.space")
        return {
            slot: Row(*row)
            for part in parts(slots)
            for slot, *row in self.all(
                f"SELECT p.slot, {columns} FROM memory_passage AS p"  # noqa: S608 - names and marks only
                f" JOIN memory_item AS i ON i.id = p.item AND {beside} = p.space"
                f" WHERE p.space = ? AND p.slot IN ({marks(part)})",
                (space.id, *part),
            )
        }

    def row(self, space: Space, column: str, value: Any) -> Row | None:
        """The full item with this uid or digest."""
        assert column in ("uid", "digest", "id")
        sql = f"SELECT {_FULL} FROM memory_item WHERE space = ? AND {column} = ?"  # noqa: S608 - checked above
        found = self.all(sql, (space.id, value))
        return Row(*found[0]) if found else None

    def known(self, space: Space, column: str, values: Iterable[Any]) -> set[Any]:
        """Which of these digests (or keys) the space has, expired or not."""
        assert column in ("digest", "key")
        table = "memory_item" if column == "digest" else "memory_key"
        return {
            value if isinstance(value, str) else bytes(value)
            for part in parts(values)
            for (value,) in self.all(
                f"SELECT {column} FROM {table} WHERE space = ? AND {column} IN ({marks(part)})",  # noqa: S608 - checked
                (space.id, *part),
            )
        }

    def row_of_key(self, space: Space, key: str) -> Row | None:
        """The full item that a key names."""
        found = self.all("SELECT item FROM memory_key WHERE space = ? AND key = ?", (space.id, key))
        return self.row(space, "id", found[0][0]) if found else None

    def page(self, space: Space, *, now: float, limit: int | None, offset: int = 0) -> list[Row]:
        """Live items, checked, newest first."""
        sql = (
            f"SELECT {_FULL} FROM memory_item WHERE space = ? AND (expires IS NULL OR expires > ?)"  # noqa: S608 - no value
            " ORDER BY id DESC LIMIT ? OFFSET ?"
        )
        most = 2**62 if limit is None else limit
        return [Row(*row).checked() for row in self.all(sql, (space.id, now, most, offset))]

    def everything(self, space: Space, above: int, limit: int) -> list[Row]:
        """Items with an id above `above`, checked, in order of id."""
        sql = f"SELECT {_FULL} FROM memory_item WHERE space = ? AND id > ? ORDER BY id LIMIT ?"  # noqa: S608 - no value
        return [Row(*row).checked() for row in self.all(sql, (space.id, above, limit))]

    def expired(self, space: Space, now: float, limit: int) -> list[int]:
        """Ids of items past their time."""
        sql = "SELECT id FROM memory_item WHERE space = ? AND expires <= ? LIMIT ?"
        return [int(id) for (id,) in self.all(sql, (space.id, now, limit))]

    def insert_rows(self, rows: Iterable[Row]) -> None:
        """Store new items."""
        sql = f"INSERT INTO memory_item ({_FULL}) VALUES ({marks(range(22))})"  # noqa: S608 - marks
        self.run_many(sql, [_values(row) for row in rows])

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
            ("DELETE FROM memory_token WHERE space = ? AND digest = ?", row.digest),
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
        for table in ("key", "version", "passage", "posting", "staged", "token"):
            self.run(f"DELETE FROM memory_{table} WHERE space = ?", (space.id,))  # noqa: S608 - literal names
        self.run("DELETE FROM memory_space WHERE id = ?", (space.id,))
        return count


_values = attrgetter(*_FULL.split(", "))
