"""Long-term memory in one readable JSON file, without any dependency of its own.

Format 1: namespaces are nested keys, a record is a node whose ``content`` is a string::

    {"~format": 1, "~revision": 7, "session": {"prefs": {"pref1": {"content": "likes tea", "metadata": {}}}}}

A namespace part or key that is ``content``, ``metadata`` or starts with ``~`` is written with one more ``~``,
so that ``("x",)`` key ``"y"`` and namespace ``("x", "y")`` can share a node. Newer records stand later.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jianmu.errors import MemoryInputError, StorageError
from jianmu.memory.long_term.base import (
    LongTermMemoryInput,
    LongTermMemoryRecordResult,
    LongTermMemoryRetrieved,
    Namespace,
    RetrievedMemory,
)
from jianmu.memory.long_term.capabilities import refuse_unknown
from jianmu.memory.long_term.inputs import check_page, input_text, namespace_tuple
from jianmu.memory.long_term.json_file import SharedJsonFile
from jianmu.memory.long_term.rendering import render_retrieved
from jianmu.memory.long_term.words import Text, match_score

__all__ = ["SimpleStore"]

FORMAT = 1
_FORMAT_KEY = "~format"
_RESERVED = ("content", "metadata")
_MOST_TEXTS = 100_000
_MOST_PARTS = 100
_Node = dict[str, Any]


class SimpleStore:
    """Facts under keys in one JSON file, found again by substring or by words.

    Every write replaces the whole file atomically (temporary file, fsync, rename) under a lock that other
    processes respect, and every call sees what they wrote. A write costs what the file holds: made for demos,
    tests and some thousands of facts; `SqliteLongTermMemory` takes over from there.

    Args:
        db_path: The file; its folder is made when something is written first.
        lock_timeout: Seconds to wait for another process that is writing.
    """

    capabilities = frozenset(
        {"search.words", "search.deep", "write.batch", "read.get", "read.list", "delete", "delete_all"}
    )

    def __init__(
        self, db_path: str | os.PathLike[str] = ".outputs/jianmu/store.json", *, lock_timeout: float = 30
    ) -> None:
        self.path = Path(db_path)
        self._file = SharedJsonFile(
            self.path, header={_FORMAT_KEY: FORMAT}, check=_check_format, lock_timeout=lock_timeout
        )
        self._texts: dict[str, Text] = {}

    def record(
        self,
        inputs: LongTermMemoryInput,
        *,
        namespace: Namespace | None = None,
        key: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> LongTermMemoryRecordResult:
        """Keep `inputs` under `key`, which becomes the record's id; it replaces an earlier one.

        Raises:
            MemoryInputError: (a ValueError) `key` is missing or empty, or there is no text in `inputs`.
            CapabilityError: An argument asks for what this store does not offer.
            MemoryInputError: `metadata` would not come back equal from JSON.
            StorageError: The file cannot be read, locked or written; it is as it was.
        """
        item = {"inputs": inputs, "namespace": namespace, "key": key, "metadata": metadata, **kwargs}
        return self.record_many([item])[0]

    def record_many(self, items: Sequence[Mapping[str, Any]]) -> list[LongTermMemoryRecordResult]:
        """Record many items, dicts of the arguments of `record`, in one write: all of them or none."""
        prepared = [self._prepare(**item) for item in items]
        with self._file.changing() as data:
            return [_put(data, *item) for item in prepared]

    def retrieve(
        self,
        query: str,
        *,
        limit: int = 5,
        namespace: Namespace | None = None,
        deep: bool = False,
        **kwargs: Any,
    ) -> LongTermMemoryRetrieved:
        """Return at most `limit` records that contain `query` or share words with it, best first.

        The score is 1.0 for the query as whole words, 0.95 for it inside a word, else 0.9 times the share of
        the query's words found (a word found by a stripped ending counts 0.9, an identifier in parts 0.8, a
        single CJK character 0.3). Equal scores: newest first; equal texts are shown once.

        Args:
            query: Any text.
            limit: The most hits.
            namespace: Searched exactly; None is ``()``.
            deep: Search the namespaces below as well.
            **kwargs: None of the arguments of other back ends is offered.
        """
        refuse_unknown(self, kwargs)
        check_page(limit)
        if not limit:
            return []
        best: dict[str, RetrievedMemory] = {}
        for hit in self._scored(query, namespace_tuple(namespace), deep):
            kept = best.get(hit["content"])
            if kept is None or (hit["score"] or 0) >= (kept["score"] or 0):
                best.pop(hit["content"], None)
                best[hit["content"]] = hit
        newest_first = reversed(best.values())
        return sorted(newest_first, key=lambda hit: -(hit["score"] or 0))[:limit]

    def format_retrieved(self, retrieved: LongTermMemoryRetrieved, **kwargs: Any) -> str:
        """Render hits as a fenced block for a model; arguments as in `render_retrieved`."""
        return render_retrieved(retrieved, **kwargs)

    def get(self, memory_id: str, *, namespace: Namespace | None = None) -> RetrievedMemory | None:
        """Return the record with this id (its key), or None."""
        with self._file.reading() as data:
            node = _child(_find(data, namespace_tuple(namespace)), memory_id)
            return _item(memory_id, node, None) if _is_record(node) else None

    def list(
        self, namespace: Namespace | None = None, *, limit: int | None = None
    ) -> LongTermMemoryRetrieved:
        """Return the records of exactly this namespace, newest first."""
        check_page(limit)
        with self._file.reading() as data:
            found = _records(_find(data, namespace_tuple(namespace)))
            return [_item(key, node, None) for key, node in found][::-1][:limit]

    def delete(self, memory_id: str, *, namespace: Namespace | None = None) -> bool:
        """Remove the record with this id; False when there is none."""
        parts = namespace_tuple(namespace)
        if self.get(memory_id, namespace=parts) is None:
            return False
        with self._file.changing() as data:
            return _remove(data, parts, memory_id)

    def delete_all(self, namespace: Namespace) -> int:
        """Remove every record of exactly this namespace; return how many there were."""
        parts = namespace_tuple(namespace)
        with self._file.changing() as data:
            keys = [key for key, _ in _records(_find(data, parts))]
            return sum(_remove(data, parts, key) for key in keys)

    def close(self) -> None:
        """Forget what is in memory; every write is on disk already. The store can be used again."""
        self._file.forget()
        self._texts = {}

    def __enter__(self) -> SimpleStore:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _prepare(
        self,
        inputs: LongTermMemoryInput,
        *,
        namespace: Namespace | None = None,
        key: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> tuple[Namespace, str, str, dict[str, Any]]:
        refuse_unknown(self, kwargs)
        if not isinstance(key, str) or not key:
            raise MemoryInputError("SimpleStore.record needs a non-empty key: record(text, key='pref1')")
        parts = namespace_tuple(namespace)
        if len(parts) > _MOST_PARTS:
            raise MemoryInputError(
                f"SimpleStore takes {_MOST_PARTS} namespace parts at most, not {len(parts)}"
            )
        return parts, key, input_text(inputs), _plain(metadata or {})

    def _scored(self, query: str, namespace: Namespace, deep: bool) -> LongTermMemoryRetrieved:
        with self._file.reading() as data:
            found = (_records_below if deep else _records)(_find(data, namespace))
            hits = []
            for key, node in found:
                score = match_score(query, self._text(node["content"]))
                if score > 0:
                    hits.append(_item(key, node, score))
            return hits

    def _text(self, content: str) -> Text:
        text = self._texts.get(content)
        if text is None:
            if len(self._texts) >= _MOST_TEXTS:
                self._texts.clear()
            text = self._texts[content] = Text.of(content)
        return text


def _check_format(data: _Node) -> None:
    found = data.get(_FORMAT_KEY, FORMAT)
    if found != FORMAT:
        raise StorageError(
            f"the store has format {found!r} and this version reads {FORMAT}; it was left as it is"
        )


def _plain(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy as JSON will give it back, if that is equal."""
    try:
        copy: dict[str, Any] = json.loads(json.dumps(dict(metadata), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise MemoryInputError(f"metadata is not plain JSON data: {error}") from error
    if copy != metadata:
        changed = sorted(str(name) for name in metadata if copy.get(name) != metadata[name])
        raise MemoryInputError(
            f"metadata would not come back equal: {', '.join(changed)}; use lists, and dicts with text keys"
        )
    return copy


def _escape(part: str) -> str:
    return "~" + part if part in _RESERVED or part.startswith("~") else part


def _unescape(name: str) -> str:
    return name[1:] if name.startswith("~") else name


def _is_record(node: _Node | None) -> bool:
    return node is not None and isinstance(node.get("content"), str)


def _child(node: _Node | None, part: str) -> _Node | None:
    child = node.get(_escape(part)) if node is not None else None
    return child if isinstance(child, dict) else None


def _find(data: _Node, parts: Namespace) -> _Node | None:
    node: _Node | None = data
    for part in parts:
        node = _child(node, part)
    return node


def _children(node: _Node | None) -> Iterator[tuple[str, _Node]]:
    for name, child in (node or {}).items():
        if isinstance(child, dict) and name not in _RESERVED:
            yield _unescape(name), child


def _records(node: _Node | None) -> Iterator[tuple[str, _Node]]:
    return ((key, child) for key, child in _children(node) if _is_record(child))


def _records_below(node: _Node | None) -> Iterator[tuple[str, _Node]]:
    for key, child in _children(node):
        if _is_record(child):
            yield key, child
        yield from _records_below(child)


def _item(key: str, node: _Node | None, score: float | None) -> RetrievedMemory:
    assert node is not None
    metadata = json.loads(json.dumps(node.get("metadata") or {}))
    return {"id": key, "content": node["content"], "metadata": metadata, "score": score}


def _put(
    data: _Node, parts: Namespace, key: str, content: str, metadata: dict[str, Any]
) -> LongTermMemoryRecordResult:
    node = data
    for part in parts:
        child = node.setdefault(_escape(part), {})
        if not isinstance(child, dict):
            raise StorageError(
                f"the store holds a {type(child).__name__} where namespace part {part!r} belongs"
            )
        node = child
    before = node.pop(_escape(key), None)  # so that the newest stands last
    known = _is_record(before) if isinstance(before, dict) else False
    node[_escape(key)] = {
        **(before if isinstance(before, dict) else {}),
        "content": content,
        "metadata": metadata,
    }
    return {"id": key, "ids": [key], "key": key, "status": "updated" if known else "stored"}


def _remove(data: _Node, parts: Namespace, key: str) -> bool:
    """Remove one record, and every node that is empty without it."""
    path = [data]
    for part in (*parts, key):
        child = _child(path[-1], part)
        if child is None:
            return False
        path.append(child)
    if not _is_record(path[-1]):
        return False
    del path[-1]["content"]
    path[-1].pop("metadata", None)
    for parent, part in zip(reversed(path[:-1]), reversed((*parts, key)), strict=True):
        if parent[_escape(part)]:
            break
        del parent[_escape(part)]
    return True
