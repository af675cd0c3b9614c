"""Keys that name items, and what the items said before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from jianmu.errors import MemoryCorruptError
from jianmu.memory.long_term.engine.items import Row, checksum
from jianmu.memory.long_term.engine.spaces import Space
from jianmu.memory.long_term.engine.statements import Statements, marks, parts

__all__ = ["HistoryTables", "Version"]


@dataclass(frozen=True, slots=True)
class Version:
    """A text that was superseded; it held from `time` until `until`."""

    uid: str
    content: str
    metadata: str
    time: float
    until: float
    crc: int | None

    def checked(self) -> Version:
        """This version, if it still says what was stored.

        Raises:
            MemoryCorruptError: It does not.
        """
        if self.crc is not None and self.crc != _checksum(self):
            raise MemoryCorruptError(
                f"an earlier text of memory {self.uid!r} is not what was stored: its checksum differs;"
                " delete() the memory and record it again, or restore the database from a backup"
            )
        return self


def _checksum(version: Version) -> int:
    times = (float(version.time), float(version.until))
    return checksum(version.uid, version.content, version.metadata, *times)


class HistoryTables(Statements):
    """Keys and superseded texts."""

    def keys(self, space: Space, ids: Iterable[int]) -> dict[int, list[str]]:
        """The keys of items."""
        found: dict[int, list[str]] = {}
        for part in parts(ids):
            sql = f"SELECT item, key FROM memory_key WHERE space = ? AND item IN ({marks(part)}) ORDER BY key"  # noqa: S608 - marks
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
        """Keep the text of `row` in the history of `uid`, for as long as it was to be kept."""
        number = self.all(
            "SELECT coalesce(max(number), -1) + 1 FROM memory_version WHERE space = ? AND uid = ?",
            (space.id, uid),
        )[0][0]
        old = Version(uid, row.content, row.metadata, row.time, until, None)
        self.run(
            "INSERT INTO memory_version (space, uid, number, content, metadata, time, until, expires, crc)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (space.id, uid, number, row.content, row.metadata, row.time, until, row.expires, _checksum(old)),
        )

    def versions(self, space: Space, uid: str, *, now: float) -> list[Version]:
        """What an item said before and may still be told, oldest first."""
        sql = (
            "SELECT uid, content, metadata, time, until, crc FROM memory_version"
            " WHERE space = ? AND uid = ? AND (expires IS NULL OR expires > ?) ORDER BY number"
        )
        return [Version(*row).checked() for row in self.all(sql, (space.id, uid, now))]

    def texts(self, space: Space, row: Row) -> list[str]:
        """Every text that an item has or had, also what may not be told any more."""
        sql = "SELECT content FROM memory_version WHERE space = ? AND uid = ?"
        return [row.content, *(content for (content,) in self.all(sql, (space.id, row.uid)))]

    def drop_versions(self, space: Space, texts: Iterable[str]) -> None:
        """Take texts out of the history of every item."""
        for text in set(texts):
            self.run("DELETE FROM memory_version WHERE space = ? AND content = ?", (space.id, text))

    def versions_at(self, space: Space, when: float, limit: int, *, now: float) -> list[Version]:
        """Superseded texts of live items that held at `when` and may still be told, newest first."""
        sql = (
            "SELECT old.uid, old.content, old.metadata, old.time, old.until, old.crc"
            " FROM memory_version AS old"
            " JOIN memory_item AS item ON item.space = old.space AND item.uid = old.uid"
            " WHERE old.space = ? AND old.time <= ? AND old.until > ?"
            " AND (old.expires IS NULL OR old.expires > ?) AND (item.expires IS NULL OR item.expires > ?)"
            " ORDER BY old.time DESC LIMIT ?"
        )
        return [Version(*row).checked() for row in self.all(sql, (space.id, when, when, now, now, limit))]
