"""What the two provider SDKs have in common: one client per event loop, and one shape of errors."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from jianmu.agents.retry import retry_after_seconds
from jianmu.errors import ChatModelError, DecodeError

__all__ = ["LoopClients", "Redactor", "translated_errors"]


class _Closable(Protocol):
    def close(self) -> Awaitable[None]: ...


ClientT = TypeVar("ClientT", bound=_Closable)

_KEY_LIKE = re.compile(r"\b(?:sk|pk|key)-[A-Za-z0-9*_-]{4,}")
_RETRYABLE = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_KINDS = {
    400: "bad_request",
    401: "authentication",
    403: "permission",
    404: "not_found",
    413: "too_large",
    422: "bad_request",
    429: "rate_limit",
    529: "overloaded",
}
_FINAL = frozenset({"invalid_request", "authentication", "permission", "not_found", "request_too_large"})
_REMEDIES = {
    "authentication": "; check the API key",
    "permission": "; check what the API key may use",
    "not_found": "; check base_url and the model's name",
}


class LoopClients(Generic[ClientT]):
    """Makes one client per running event loop, since a connection pool cannot move between loops."""

    def __init__(self, make: Callable[[], ClientT]) -> None:
        self._make = make
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, ClientT] = WeakKeyDictionary()

    def get(self) -> ClientT:
        """Return the running loop's client."""
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            client = self._clients[loop] = self._make()
        return client

    async def aclose(self) -> None:
        """Close the running loop's client; the next `get` makes a new one."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()


class Redactor:
    """Takes a key, and whatever looks like one, out of a text."""

    def __init__(self, secret: str | None) -> None:
        self._secret = secret

    def __call__(self, text: str) -> str:
        """Return `text` without keys."""
        if self._secret:
            text = text.replace(self._secret, "***")
        return _KEY_LIKE.sub("***", text)

    def __repr__(self) -> str:
        return "Redactor(***)"


@asynccontextmanager
async def translated_errors(sdk: Any, provider: str, redact: Redactor) -> AsyncIterator[None]:
    """Turn the errors of a Stainless-made SDK (`openai`, `anthropic`) into `ChatModelError`.

    The cause is not chained: a provider's text may echo the key.
    """
    try:
        yield
    except sdk.APIStatusError as error:
        raise _status_error(error, provider, redact) from None
    except sdk.APITimeoutError:
        raise ChatModelError(f"{provider} did not answer in time", kind="timeout", retryable=True) from None
    except sdk.APIConnectionError as error:
        cause = type(error.__cause__).__name__ if error.__cause__ else type(error).__name__
        raise ChatModelError(
            f"{provider} could not be reached or broke off ({cause}); check base_url and the network",
            kind="connection",
            retryable=True,
        ) from None
    except sdk.APIError as error:  # an error event inside a stream
        raise ChatModelError(
            f"{provider} broke off its answer: {redact(str(error.message))[:500]}",
            kind="stream",
            retryable=True,
        ) from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, DecodeError) as error:
        raise ChatModelError(
            f"{provider} sent an answer that makes no sense ({type(error).__name__}: "
            f"{redact(' '.join(str(error).split()))[:200]}); check base_url, and that the server "
            "speaks this API",
            kind="stream",
            retryable=isinstance(error, json.JSONDecodeError),
        ) from None
    except _transport_errors() as error:  # older SDKs let a cut stream's error through
        raise ChatModelError(
            f"{provider} broke off its answer ({type(error).__name__})", kind="connection", retryable=True
        ) from None


def _status_error(error: Any, provider: str, redact: Redactor) -> ChatModelError:
    status = int(error.status_code)
    if status < 400:  # an error event inside a stream that began well
        return _event_error(error, provider, redact)
    kind = _KINDS.get(status, "server" if status >= 500 else "refused")
    hint = error.response.headers.get("x-should-retry")
    retryable = status in _RETRYABLE or status >= 500
    if hint in ("true", "false"):
        retryable = hint == "true"
    return ChatModelError(
        f"{provider} answered {status}: {redact(str(error.message))[:500]}{_REMEDIES.get(kind, '')}",
        kind=kind,
        status=status,
        retryable=retryable,
        retry_after=retry_after_seconds(error.response.headers),
    )


def _event_error(error: Any, provider: str, redact: Redactor) -> ChatModelError:
    body = error.body if isinstance(error.body, Mapping) else {}
    inner = body.get("error")
    details: Mapping[str, Any] = inner if isinstance(inner, Mapping) else {}
    kind = str(details.get("type") or "stream").removesuffix("_error")
    return ChatModelError(
        f"{provider} broke off its answer: {redact(str(details.get('message') or error.message))[:500]}",
        kind=kind,
        retryable=kind not in _FINAL,
    )


def _transport_errors() -> tuple[type[Exception], ...]:
    found: list[type[Exception]] = []
    for name in ("httpx", "httpx2"):
        try:
            found.append(import_module(name).TransportError)
        except ImportError:
            continue
    return tuple(found)
