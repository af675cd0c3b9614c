"""A local HTTP server in the wire formats that mem0 speaks: OpenAI's, and its own hosted service's.

Embeddings are deterministic hashes of words and CJK bigrams, so that texts which share words are near.
Every request is kept in `requests` as (method, path, body).
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import struct
import threading
import unicodedata
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

DIMENSIONS = 384


def tokens(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = re.findall(r"[a-z0-9']+", folded)
    han = re.findall(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+", folded)
    return words + [run[i : i + 2] for run in han for i in range(max(1, len(run) - 1))]


def embed(text: str) -> list[float]:
    vector = [0.0] * DIMENSIONS
    for token in tokens(text) or [text]:
        digest = hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        place, sign = struct.unpack("<Ib", digest[:5])
        vector[place % DIMENSIONS] += 1.0 if sign >= 0 else -1.0
    length = math.sqrt(sum(x * x for x in vector)) or 1.0
    return [x / length for x in vector]


Reply = Callable[[dict[str, Any]], str]


class Wire:
    """The server's state: what it was asked, and what it answers."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []
        self.reply: Reply = lambda body: "{}"
        self.hosted: dict[str, dict[str, Any]] = {}
        self.as_list = False
        self.pending = False
        self.fail_with: int | None = None
        self.embedder: Callable[[str], list[float]] = embed
        self.url = ""

    def chats(self) -> list[dict[str, Any]]:
        return [body for _, path, body in self.requests if path.endswith("/chat/completions")]

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        parts = urlsplit(path)
        route = parts.path.rstrip("/")
        if self.fail_with is not None and not route.endswith("/ping"):
            return self.fail_with, {"error": "told to fail", "detail": "told to fail"}
        if route.endswith("/embeddings"):
            return 200, self._embeddings(body)
        if route.endswith("/chat/completions"):
            return 200, self._chat(body)
        return self._hosted(method, route, {k: v[0] for k, v in parse_qs(parts.query).items()}, body)

    def _embeddings(self, body: dict[str, Any]) -> dict[str, Any]:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        vectors: list[Any] = [self.embedder(text) for text in texts]
        if body.get("encoding_format") == "base64":
            vectors = [base64.b64encode(struct.pack(f"<{len(v)}f", *v)).decode() for v in vectors]
        data = [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(vectors)]
        return {
            "object": "list",
            "model": body["model"],
            "data": data,
            "usage": {"prompt_tokens": 1, "total_tokens": 1},
        }

    def _chat(self, body: dict[str, Any]) -> dict[str, Any]:
        message = {"role": "assistant", "content": self.reply(body)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return {
            "id": "c1",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [choice],
            "usage": usage,
        }

    def _hosted(
        self, method: str, route: str, query: dict[str, str], body: dict[str, Any]
    ) -> tuple[int, Any]:
        if route == "/v1/ping":
            return 200, {
                "status": "ok",
                "user_email": "nobody@example.invalid",
                "org_id": "o1",
                "project_id": "p1",
            }
        if method == "POST" and route in ("/v1/memories", "/v3/memories/add"):
            return 200, self._hosted_add(body)
        if method == "POST" and route in ("/v2/memories/search", "/v3/memories/search"):
            rows = self._hosted_rows(body)
            wanted = set(tokens(body["query"]))
            scored = [
                {**row, "score": len(wanted & set(tokens(row["memory"]))) / (len(wanted) or 1)}
                for row in rows
            ]
            ranked = sorted((r for r in scored if r["score"]), key=lambda r: -r["score"])
            return 200, self._shape(ranked[: int(body.get("top_k", 10))])
        if method == "POST" and route in ("/v2/memories", "/v3/memories"):
            rows = self._hosted_rows(body)
            page, size = int(query.get("page", 1)), int(query.get("page_size", 100))
            part = rows[(page - 1) * size : page * size]
            more = f"?page={page + 1}" if page * size < len(rows) else None
            return 200, part if self.as_list else {
                "count": len(rows),
                "next": more,
                "previous": None,
                "results": part,
            }
        memory_id = route.split("/")[3] if route.count("/") >= 3 else ""
        row = self.hosted.get(memory_id)
        if row is None:
            return 404, {"error": "Memory not found!", "detail": "Not found"}
        if route.endswith("/history"):
            return 200, [
                {"memory_id": memory_id, "old_memory": None, "new_memory": row["memory"], "event": "ADD"}
            ]
        if method == "DELETE":
            del self.hosted[memory_id]
            return 200, {"message": "Memory deleted successfully!"}
        if method == "PUT":
            row["memory"] = body.get("text", row["memory"])
            row["metadata"] = body.get("metadata", row["metadata"])
        return 200, row

    def _hosted_add(self, body: dict[str, Any]) -> Any:
        text = "\n".join(str(m["content"]) for m in body["messages"])
        if self.pending:
            return {"message": "queued", "status": "PENDING", "event_id": str(uuid.uuid4())}
        memory_id = str(uuid.uuid4())
        row = {
            "id": memory_id,
            "memory": text,
            "user_id": body["user_id"],
            "metadata": body.get("metadata"),
            "created_at": "2026-01-01T00:00:00Z",
        }
        self.hosted[memory_id] = row
        return self._shape([{"id": memory_id, "memory": text, "event": "ADD"}])

    def _hosted_rows(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        user_id = body["filters"]["user_id"]
        return [row for row in self.hosted.values() if row["user_id"] == user_id]

    def _shape(self, rows: list[dict[str, Any]]) -> Any:
        return rows if self.as_list else {"results": rows}


@contextmanager
def serve() -> Iterator[Wire]:
    wire = Wire()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = json.loads(raw) if raw else {}
            wire.requests.append((self.command, self.path, body))
            wire.headers.append(dict(self.headers))
            status, answer = wire.answer(self.command, self.path, body)
            payload = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        do_GET = do_PUT = do_DELETE = do_POST

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    wire.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield wire
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
