"""A chat provider on the loopback: real HTTP, both wire formats, faults on order, a log of what came."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from jianmu.testing.provider_cache import PromptCache
from jianmu.testing.provider_wire import (
    ProviderAnswer,
    ProviderRequest,
    WireError,
    anthropic_wire,
    event,
    openai_wire,
)

__all__ = ["Fault", "LoggedCall", "ProviderServer"]


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request.

    Attributes:
        status: Answer with this status instead.
        headers: Headers of that answer, e.g. ``{"Retry-After": "1"}``.
        cut_after: Stream so many events, then close the socket in the middle of the body.
        end_after: Stream so many events, then end the body properly, too early.
    """

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    end_after: int | None = None


@dataclass
class LoggedCall:
    """One request as the server saw it.

    Attributes:
        path: The URL's path.
        key: The header ``Idempotency-Key``, or None.
        body: The JSON that came.
        outcome: ``"started"``, then ``"done"``, ``"fault"``, ``"refused"`` or ``"broken"`` (the client left).
        time: `time.monotonic` at arrival.
    """

    path: str
    key: str | None
    body: dict[str, Any]
    outcome: str = "started"
    time: float = 0.0


class ProviderServer:
    """Answers ``/v1/chat/completions`` and ``/v1/messages`` by a rule, and takes calls at ``/tools/...``.

    Args:
        brain: From a request to the model's answer; must be a pure function, so that a repeated request
            is answered alike.
        api_key: The only key that is let in.
        delay: Seconds between two streamed events.
        before_answer: Called after a request is logged and before it is answered, e.g. to kill the client.
    """

    def __init__(
        self,
        brain: Callable[[ProviderRequest], ProviderAnswer],
        *,
        api_key: str = "sk-test-0123456789",
        delay: float = 0.0,
        before_answer: Callable[[LoggedCall], None] | None = None,
    ) -> None:
        self.api_key = api_key
        self.faults: deque[Fault] = deque()
        self.log: list[LoggedCall] = []
        self.delay = delay
        self._brain = brain
        self._before_answer = before_answer
        self._prompt_cache = PromptCache()
        self._lock = threading.Lock()
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.provider = self
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    def __enter__(self) -> ProviderServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """The root, without a slash at its end."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def openai_url(self) -> str:
        """The `base_url` for the OpenAI SDK."""
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        """The `base_url` for the Anthropic SDK."""
        return self.url

    def calls(self, prefix: str = "/v1/") -> list[LoggedCall]:
        """Return the logged requests below a path, in order of arrival."""
        with self._lock:
            return [call for call in self.log if call.path.startswith(prefix)]

    def _enter(
        self, path: str, key: str | None, body: dict[str, Any]
    ) -> tuple[LoggedCall, int, Fault | None]:
        with self._lock:
            call = LoggedCall(path, key, body, time=time.monotonic())
            self.log.append(call)
            fault = self.faults.popleft() if self.faults and path.startswith("/v1/") else None
            return call, len(self.log), fault

    def _answer(self, request: ProviderRequest) -> ProviderAnswer:
        return self._brain(request)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    provider: ProviderServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is no error here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        provider = self.server.provider
        length = int(self.headers.get("Content-Length", 0))
        data = self.rfile.read(length)
        if len(data) < length:  # the client died while it was sending: nothing was asked
            self.close_connection = True
            return
        body = json.loads(data or b"{}")
        call, serial, fault = provider._enter(self.path, self.headers.get("Idempotency-Key"), body)
        try:
            if provider._before_answer is not None:
                provider._before_answer(call)
            if self.path.startswith("/tools/"):
                self._json(200, {"ok": True, "serial": serial})
                call.outcome = "done"
            else:
                call.outcome = self._chat(call, serial, fault)
        except OSError:
            call.outcome = "broken"
            self.close_connection = True

    def _chat(self, call: LoggedCall, serial: int, fault: Fault | None) -> str:
        provider = self.server.provider
        wire = openai_wire if self.path.endswith("/chat/completions") else anthropic_wire
        key = self.headers.get("x-api-key") or self.headers.get("Authorization", "").removeprefix("Bearer ")
        if key != provider.api_key:
            self._json(401, wire.error(401, f"Incorrect API key provided: {key}"))
            return "refused"
        if fault is not None and fault.status is not None:
            self._json(fault.status, wire.error(fault.status, "as ordered"), fault.headers)
            return "fault"
        try:
            request = wire.read(call.body, call.key)
            read, written = (0, 0) if wire is openai_wire else provider._prompt_cache.use(call.body)
        except (WireError, KeyError, TypeError, ValueError) as error:
            self._json(400, wire.error(400, f"{type(error).__name__}: {error}"))
            return "refused"
        answer = provider._answer(request)
        if read or written:
            answer = replace(answer, cache_read=read, cache_write=written)
        model = str(call.body.get("model", ""))
        if call.body.get("stream"):
            events = map(event, answer.raw) if answer.raw else wire.events(answer, model, serial)
            return self._stream(list(events), fault)
        self._json(200, wire.whole(answer, model, serial))
        return "done"

    def _stream(self, events: list[str], fault: Fault | None) -> str:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, text in enumerate(events):
            if fault is not None and fault.cut_after == number:
                self.wfile.write(b"ffff\r\ndata: {")
                self.close_connection = True
                return "fault"
            if fault is not None and fault.end_after == number:
                self.wfile.write(b"0\r\n\r\n")
                return "fault"
            data = text.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
            if self.server.provider.delay:
                time.sleep(self.server.provider.delay)
        self.wfile.write(b"0\r\n\r\n")
        return "done"

    def _json(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body, ensure_ascii=False).encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(data)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on standard error."""
