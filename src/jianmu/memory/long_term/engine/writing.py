"""Keeps items, keys, history and links in step with the index, inside one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from jianmu.memory.long_term.base import LongTermMemoryRecordResult, RecordStatus
from jianmu.memory.long_term.engine.index_writing import Embed, IndexWriter
from jianmu.memory.long_term.engine.items import Draft, Row, digest_of
from jianmu.memory.long_term.engine.tables import Space, Tables
from jianmu.retrieval.scripts import has_unspaced
from jianmu.retrieval.tokens import Analyzer

__all__ = ["Writer"]

_SWEPT_AT_ONCE = 50


class Writer(IndexWriter):
    """Changes to one space.

    Args:
        tables: The open transaction.
        space: Claimed in it.
        analyzer: Splits texts into terms.
        embed: Gives the vectors of a text, ready made where possible.
        now: Seconds since 1970.
        new_id: Makes public ids.
    """

    def __init__(
        self,
        tables: Tables,
        space: Space,
        *,
        analyzer: Analyzer,
        embed: Embed,
        now: float,
        new_id: Callable[[], str],
    ) -> None:
        super().__init__(tables, space, analyzer=analyzer, embed=embed)
        self._now = now
        self._new_id = new_id
        self._last: dict[str, int | None] = {}
        self._new: set[bytes] = set()
        self._free: set[str] = set()

    def expect(self, drafts: Iterable[Draft]) -> None:
        """Look up at once which texts and keys are new, so that `record` need not ask for each."""
        drafts = list(drafts)
        self._new = {draft.digest for draft in drafts}
        self._new -= self._tables.known(self._space, "digest", self._new)
        self._free = {draft.key for draft in drafts if draft.key is not None}
        self._free -= self._tables.known(self._space, "key", self._free)

    def sweep(self) -> None:
        """Drop some of what has expired."""
        for id in self._tables.expired(self._space, self._now, _SWEPT_AT_ONCE):
            row = self._tables.row(self._space, "id", id)  # read late: the drop before changed its neighbours
            if row is not None:
                self.drop(row)

    def expire(self, digest: bytes) -> None:
        """Drop the item with this text if its time is over."""
        self._flush()
        row = self._tables.row(self._space, "digest", digest)
        if row is not None and self._has_expired(row):
            self.drop(row)

    def record(self, draft: Draft) -> LongTermMemoryRecordResult:
        """Store, replace or count a draft."""
        if draft.digest in self._new and (draft.key is None or draft.key in self._free):
            return _result(self._insert(draft), draft, "stored")
        self.expire(draft.digest)
        named = None if draft.key is None else self._tables.row_of_key(self._space, draft.key)
        if named is not None and self._has_expired(named):
            self.drop(named)
            named = None
        same = self._tables.row(
            self._space, "digest", draft.digest
        )  # after the drops, which change neighbours
        if same is not None and (draft.key is None or (named is not None and named.id == same.id)):
            row, status = same, self._again(same, draft)
        elif same is not None:
            row, status = same, self._join(same, draft, named)
        elif named is None:
            row, status = self._insert(draft), "stored"
        elif len(self._tables.keys(self._space, [named.id])[named.id]) > 1:
            row, status = self._part(named, draft), "updated"
        else:
            row, status = self._replace(named, draft), "updated"
        return _result(row, draft, status)

    def replace(
        self,
        row: Row,
        *,
        content: str,
        metadata: str,
        time: float,
        day: int,
        dated: bool,
        expires: float | None,
        speaker: str | None = None,
    ) -> None:
        """Give an item another text; the old one goes into its history.

        Raises:
            MemoryCorruptError: The old one is damaged; so for every change of an item.
        """
        row.checked()
        self._tables.add_version(self._space, row.uid, row, time)
        speaker = row.speaker if speaker is None else speaker
        changed = (content, day, speaker) != (row.content, row.day, row.speaker)
        after = self._unlink_index(row) if changed else None
        if (digest_of(content), speaker) != (row.digest, row.speaker):
            self._tables.remove_tokens(self._space, row.digest)
        row.content, row.metadata, row.digest = content, metadata, digest_of(content)
        self._new.discard(row.digest)
        row.unspaced = has_unspaced(content)
        row.dated, row.expires = dated, expires
        row.time, row.day, row.speaker, row.updated, row.count = time, day, speaker, self._now, 1
        row.sealed()
        if changed:
            self._index(row)
        self._tables.update_row(row)
        if after is not None:
            self._reindex(after)

    def change_metadata(self, row: Row, metadata: str) -> None:
        """Give an item other metadata; no history."""
        row.checked()
        row.metadata, row.updated = metadata, self._now
        self._tables.update_row(row.sealed())

    def drop_key(self, row: Row, key: str) -> None:
        """Take a key off an item, and the item with its last one."""
        if len(self._tables.keys(self._space, [row.id]).get(row.id, [])) > 1:
            self._tables.drop_key(self._space, key)
        else:
            self.drop(row)

    def drop(self, row: Row) -> None:
        """Remove an item from the tables, the index and its session."""
        self._last.clear()
        after = self._unlink_index(row)
        if row.before is not None:
            self._tables.set_link(self._space, row.before, "after", row.after)
        self._tables.delete_row(row)
        if after is not None:
            self._tables.set_link(self._space, after.id, "before", row.before)
            after.before = row.before
            self._reindex(after)

    def reindex(self, row: Row) -> None:
        """Index an item that is not in the index."""
        self._index(row)
        self._tables.update_row(row)

    # -- the cases of `record` ------------------------------------------------------------------------

    def _has_expired(self, row: Row) -> bool:
        return row.expires is not None and row.expires <= self._now

    def _again(self, row: Row, draft: Draft) -> RecordStatus:
        """The same text once more: counted, its metadata merged, its expiry renewed."""
        row.checked()
        merged = {**json.loads(row.metadata), **json.loads(draft.metadata)}
        changed = merged != json.loads(row.metadata)
        if changed:
            row.metadata = json.dumps(merged, ensure_ascii=False)
        row.count += 1
        if row.expires is not None:
            row.expires = None if draft.expires is None else max(row.expires, draft.expires)
        row.updated = self._now
        self._tables.update_row(row.sealed())
        return "updated" if changed and draft.key is not None else "duplicate"

    def _join(self, same: Row, draft: Draft, named: Row | None) -> RecordStatus:
        """The text is there already: the key now names it, and what the key named is superseded."""
        assert draft.key is not None
        if named is not None:
            self._tables.add_version(self._space, same.uid, named.checked(), draft.time)
            self.drop_key(named, draft.key)
            fresh = self._tables.row(
                self._space, "id", same.id
            )  # the drop may have linked or indexed it anew
            assert fresh is not None
            same.slot, same.before, same.after = fresh.slot, fresh.before, fresh.after
        self._again(same, draft)
        self._tables.put_key(self._space, draft.key, same.id)
        return "duplicate" if named is None else "updated"

    def _insert(self, draft: Draft) -> Row:
        row = Row(
            id=self._space.id << 32 | self._space.items,
            uid=self._new_id(),
            space=self._space.id,
            slot=0,
            passages=1,
            length=0,
            before=None,
            after=None,
            session=draft.session,
            speaker=draft.speaker,
            time=draft.time,
            day=draft.day,
            dated=draft.dated,
            expires=draft.expires,
            unspaced=has_unspaced(draft.content),
            content=draft.content,
            metadata=draft.metadata,
            digest=draft.digest,
            created=self._now,
            updated=self._now,
        ).sealed()
        self._space.items += 1
        self._new.discard(draft.digest)
        if row.session is not None:
            self._link(row, row.session)
        self._index(row)
        self._rows[row.id] = row
        if draft.key is not None:
            self._free.discard(draft.key)
            self._tables.put_key(self._space, draft.key, row.id)
        return row

    def _link(self, row: Row, session: str) -> None:
        """Put a new item behind the last one of its session."""
        if session not in self._last:
            self._last[session] = self._tables.last_in_session(self._space, session)
        row.before, self._last[session] = self._last[session], row.id
        if row.before in self._rows:
            self._rows[row.before].after = row.id
        elif row.before is not None:
            self._tables.set_link(self._space, row.before, "after", row.id)

    def _part(self, named: Row, draft: Draft) -> Row:
        """The key leaves an item that others still name."""
        row = self._insert(draft)
        self._tables.add_version(self._space, row.uid, named.checked(), draft.time)
        return row

    def _replace(self, named: Row, draft: Draft) -> Row:
        self.replace(
            named,
            content=draft.content,
            metadata=draft.metadata,
            time=draft.time,
            day=draft.day,
            dated=draft.dated,
            expires=draft.expires,
            speaker=draft.speaker,
        )
        return named


def _result(row: Row, draft: Draft, status: RecordStatus) -> LongTermMemoryRecordResult:
    return {"id": row.uid, "ids": [row.uid], "key": draft.key, "status": status}
