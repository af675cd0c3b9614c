"""Semantic memory by mem0, local or hosted."""

from __future__ import annotations

import builtins
import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from jianmu.errors import JianmuError, LongTermMemoryError, MemoryInputError
from jianmu.memory.long_term.base import (
    LongTermMemoryInput,
    LongTermMemoryRecordResult,
    LongTermMemoryRetrieved,
    Namespace,
    RecordStatus,
    RetrievedMemory,
)
from jianmu.memory.long_term.capabilities import refuse_unknown
from jianmu.memory.long_term.inputs import check_page, input_text
from jianmu.memory.long_term.mem0_calls import Mem0Calls, open_hosted, open_local
from jianmu.memory.long_term.mem0_errors import clean_error, secret_values
from jianmu.memory.long_term.mem0_scope import drop_names, pack_metadata, unpack_metadata, user_id_of
from jianmu.memory.long_term.rendering import render_retrieved

__all__ = ["Mem0LongTermMemory"]

T = TypeVar("T")

_SEARCH_OPTIONS = frozenset({"threshold", "rerank"})


class Mem0LongTermMemory:
    """Memories kept by `mem0 <https://docs.mem0.ai>`_, versions 1.0.8 to 2.x.

    mem0 is imported and its client is built at the first use, with its telemetry off unless
    ``MEM0_TELEMETRY`` says otherwise. With ``infer=True`` mem0 asks its language model which facts to keep:
    what is stored is then not what was recorded. With ``infer=False`` the text is stored as it is, once per
    namespace; a second record under the same `key` replaces the first.

    Args:
        config: mem0's own config, passed on as it is; with `api_key`, the hosted client's other arguments.
        api_key: Use mem0's hosted service instead of a local store.
        infer: Let mem0 extract facts with its language model.
    """

    def __init__(
        self, config: Mapping[str, Any] | None = None, api_key: str | None = None, infer: bool = True
    ) -> None:
        self._config = config
        self._api_key = api_key
        self.infer = infer
        self._lock = threading.RLock()  # mem0's local stores lose writes when two threads meet
        self._opened: Mem0Calls | None = None

    @property
    def capabilities(self) -> frozenset[str]:
        """What this memory offers beside `record` and `retrieve`."""
        offered = {"search.semantic", "write.keyless", "read.get", "read.list", "read.history", "delete"}
        return frozenset(offered | {"delete_all"} | ({"write.dedupe"} if self._verbatim else set()))

    @property
    def _verbatim(self) -> bool:
        return not self.infer and self._api_key is None

    def __repr__(self) -> str:
        kind = "local" if self._api_key is None else "hosted"
        return f"Mem0LongTermMemory({kind}, infer={self.infer})"

    @property
    def client(self) -> Any:
        """mem0's own client, built at the first use."""
        return getattr(self._call("open", lambda calls: calls), "client", None)

    def record(
        self,
        inputs: LongTermMemoryInput,
        *,
        namespace: Namespace | None = None,
        key: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> LongTermMemoryRecordResult:
        """Add `inputs` as one text.

        Returns:
            Status "stored", "updated" or "duplicate" with ids; "queued" when the hosted service answered
            before it stored; "nothing" when mem0's model found no fact worth keeping.

        Raises:
            TypeError, ValueError: `inputs` or `namespace` is none, or empty.
            MemoryInputError: Metadata that mem0 would misread.
            CapabilityError: `ttl`, which mem0 has no place for in every version.
            LongTermMemoryError: mem0 failed; nothing is known to be stored.
        """
        refuse_unknown(self, kwargs)
        text = input_text(inputs)
        if _has_surrogates(text):
            raise MemoryInputError("mem0 cannot keep text with lone surrogates; clean it first")
        user_id, packed = user_id_of(namespace), pack_metadata(metadata, key)
        with self._lock:
            known = self._known(text, user_id, key, packed)
            if known is not None:
                return known
            answer = self._call("record", lambda calls: calls.add(text, user_id, packed, self.infer))
        return _record_result(answer, key)

    def _known(
        self, text: str, user_id: str, key: str | None, packed: dict[str, Any]
    ) -> LongTermMemoryRecordResult | None:
        """Find what a verbatim record would repeat or replace; mem0 itself would store it beside."""
        if not self._verbatim:
            return None
        if key is not None:
            for row in self._rows(user_id, {"key": key}):
                return self._replace(row, text, packed, key)
            return None
        digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()  # mem0's own content hash
        for row in self._rows(user_id, {"hash": digest}):
            if row.get("memory") == text:
                return _result([str(row["id"])], None, "duplicate")
        return None

    def _replace(
        self, row: Mapping[str, Any], text: str, packed: dict[str, Any], key: str
    ) -> LongTermMemoryRecordResult:
        memory_id = str(row["id"])
        wanted, before = unpack_metadata(packed), dict(row.get("metadata") or {})
        if row.get("memory") == text and unpack_metadata(before) == wanted:
            return _result([memory_id], key, "duplicate")
        self._call("record", lambda calls: calls.replace(memory_id, text, packed))
        now = self._call("record", lambda calls: calls.get(memory_id))
        if unpack_metadata(now.get("metadata")) != wanted:
            noted = drop_names(packed, before.keys() - packed.keys())
            self._call("record", lambda calls: calls.replace(memory_id, text, noted))
        return _result([memory_id], key, "updated")

    def retrieve(
        self, query: str, *, limit: int = 5, namespace: Namespace | None = None, **kwargs: Any
    ) -> LongTermMemoryRetrieved:
        """Search exactly this namespace; order and scores are the vector store's own.

        Args:
            query: Any text; an empty one finds nothing.
            limit: At most so many hits, on every version.
            namespace: None is ``()``.
            **kwargs: `threshold` and `rerank`, as mem0 takes them.
        """
        options = {name: kwargs.pop(name) for name in _SEARCH_OPTIONS & kwargs.keys()}
        refuse_unknown(self, kwargs)
        check_page(limit)
        user_id = user_id_of(namespace)
        if not query.strip() or not limit or _has_surrogates(query):
            return []
        asked = limit
        while True:
            rows = self._search(query, user_id, asked, options)
            hits = {str(row.get("memory")): row for row in reversed(rows) if _belongs(row, user_id)}
            if len(hits) >= limit or len(rows) < asked:
                best = list(reversed(hits.values()))[:limit]
                return [self._normalize_item(row) for row in best]
            asked *= 2  # copies of one text, under several keys, took places

    def _search(
        self, query: str, user_id: str, limit: int, options: Mapping[str, Any]
    ) -> builtins.list[Mapping[str, Any]]:
        answer = self._call("retrieve", lambda calls: calls.search(query, user_id, limit, options))
        return [row for row in self._extract_results(answer) if isinstance(row, Mapping)]

    def format_retrieved(self, retrieved: LongTermMemoryRetrieved, **kwargs: Any) -> str:
        """Render hits with number, id, score and metadata, fenced as data."""
        return render_retrieved(retrieved, **kwargs)

    def get(self, memory_id: str, *, namespace: Namespace | None = None) -> RetrievedMemory | None:
        """Return one memory of this namespace, or None."""
        row = self._call("get", lambda calls: calls.get(memory_id))
        owned = isinstance(row, Mapping) and _belongs(row, user_id_of(namespace))
        return self._normalize_item(row) if owned else None

    def list(
        self, namespace: Namespace | None = None, *, limit: int | None = None
    ) -> LongTermMemoryRetrieved:
        """Return the memories of exactly this namespace, newest first."""
        check_page(limit)
        rows = list[Mapping[str, Any]](self._rows(user_id_of(namespace), {}))
        rows.sort(key=lambda row: str(row.get("created_at") or ""), reverse=True)
        return [self._normalize_item(row) for row in rows[:limit]]

    def delete(self, memory_id: str, *, namespace: Namespace | None = None) -> bool:
        """Delete one memory if it belongs to this namespace; return whether it did."""
        with self._lock:
            if self.get(memory_id, namespace=namespace) is None:
                return False
            self._call("delete", lambda calls: calls.delete(memory_id))
        return True

    def delete_all(self, namespace: Namespace) -> int:
        """Delete what exactly this namespace holds, with change history and raw messages; return how many.

        mem0's own `delete_all` is never called: some versions stop after 100 rows. Of the hosted service's
        history nothing is promised.
        """
        user_id, gone = user_id_of(namespace), list[str]()
        with self._lock:
            while batch := [str(row["id"]) for row in self._rows(user_id, {})]:
                if set(batch) <= set(gone):
                    raise LongTermMemoryError(f"mem0 still lists {len(batch)} memories after deleting them")
                for memory_id in batch:
                    self._call("delete_all", partial(_delete, memory_id))
                gone.extend(batch)
            self._call("delete_all", lambda calls: calls.purge(gone, user_id))
        return len(gone)

    def history(self, memory_id: str, *, namespace: Namespace | None = None) -> builtins.list[dict[str, Any]]:
        """Return what a memory of this namespace said over time, oldest first; [] if it is not there.

        Each entry is mem0's own row and, as "content", the text from then on.
        """
        if self.get(memory_id, namespace=namespace) is None:
            return []
        rows = self._call("history", lambda calls: calls.history(memory_id))
        return [{"content": row.get("new_memory"), **row} for row in rows or []]

    def close(self) -> None:
        """Free the store's files and lock; the next use opens them again."""
        with self._lock:
            opened, self._opened = self._opened, None
            if opened is not None:
                opened.close()

    def __enter__(self) -> Mem0LongTermMemory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @staticmethod
    def _extract_results(response: Any) -> builtins.list[Any]:
        """Return the rows of any of mem0's answers: a dict's "results", or the list itself."""
        rows = response.get("results") if isinstance(response, Mapping) else response
        return list(rows) if isinstance(rows, list | tuple) else []

    @staticmethod
    def _normalize_item(item: Mapping[str, Any]) -> RetrievedMemory:
        """Return one of mem0's rows in our form."""
        text = item.get("memory")
        score = item.get("score")
        return {
            "id": None if item.get("id") is None else str(item["id"]),
            "content": str((item.get("content") or "") if text is None else text),
            "metadata": unpack_metadata(item.get("metadata")),
            "score": None if score is None else float(score),
        }

    def _rows(self, user_id: str, filters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield all rows of one user; filters are checked again here, as some stores drop them silently."""
        number, seen = 1, set[str]()
        while True:
            answer = self._call("list", partial(_page, user_id, filters, number))
            rows = [row for row in self._extract_results(answer) if str(row.get("id")) not in seen]
            if not rows:
                return
            for row in rows:
                seen.add(str(row.get("id")))
                if _belongs(row, user_id) and _matches(row, filters):
                    yield row
            if isinstance(answer, Mapping) and not answer.get("next"):
                return
            number += 1

    def _call(self, doing: str, action: Callable[[Mem0Calls], T]) -> T:
        """Run one of mem0's calls alone, and turn what it raises into our error without a secret in it."""
        with self._lock:
            try:
                return action(self._calls())
            except JianmuError:
                raise
            except Exception as error:  # noqa: BLE001 - mem0 and its stores raise classes of a dozen packages
                client = getattr(self._opened, "client", None)
                secrets = secret_values(self._config, self._api_key)
                raise clean_error(doing, error, secrets, client) from None

    def _calls(self) -> Mem0Calls:
        if self._opened is None:
            hosted = self._api_key is not None
            self._opened = (
                open_hosted(str(self._api_key), self._config) if hosted else open_local(self._config)
            )
        return self._opened


def _delete(memory_id: str, calls: Mem0Calls) -> None:
    calls.delete(memory_id)


def _page(user_id: str, filters: Mapping[str, Any], number: int, calls: Mem0Calls) -> Any:
    return calls.page(user_id, filters, number)


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def _belongs(row: Mapping[str, Any], user_id: str) -> bool:
    return bool(row.get("user_id", user_id) == user_id)


def _matches(row: Mapping[str, Any], filters: Mapping[str, Any]) -> bool:
    metadata = row.get("metadata") or {}
    return all(row.get(name, metadata.get(name)) == value for name, value in filters.items())


def _result(ids: list[str], key: str | None, status: RecordStatus) -> LongTermMemoryRecordResult:
    return {"id": ids[0] if ids else None, "ids": ids, "key": key, "status": status}


def _record_result(answer: Any, key: str | None) -> LongTermMemoryRecordResult:
    rows = [row for row in Mem0LongTermMemory._extract_results(answer) if isinstance(row, Mapping)]
    live = [row for row in rows if row.get("id") is not None and row.get("event") not in ("DELETE", "NONE")]
    if live:
        updated = all(row.get("event") == "UPDATE" for row in live)
        return _result([str(row["id"]) for row in live], key, "updated" if updated else "stored")
    pending = isinstance(answer, Mapping) and ("event_id" in answer or answer.get("status") == "PENDING")
    return _result([], key, "queued" if pending or _any_pending(rows) else "nothing")


def _any_pending(rows: list[Mapping[str, Any]]) -> bool:
    return any("event_id" in row or row.get("status") == "PENDING" for row in rows)
