"""Embeddings over HTTP from any server that speaks OpenAI's ``/embeddings``; standard library only."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from typing import Any

from jianmu.errors import ConfigError, EmbedderError
from jianmu.retrieval.embedders.base import Vectors

__all__ = ["OpenAIEmbedder"]

_AGAIN = frozenset({408, 409, 429, 500, 502, 503, 504})


class OpenAIEmbedder:
    """An OpenAI-compatible embedding endpoint (OpenAI, vLLM, Ollama, llama.cpp, LiteLLM, ...).

    Every text recorded or asked is sent to `base_url`; never chosen by "auto".

    Args:
        model: The model's name at the server.
        base_url: Up to and without ``/embeddings``.
        api_key: Sent as a bearer token; None reads ``OPENAI_API_KEY``, an empty string sends none.
        dimension: Length of a vector; asked of the server at first use when None. Given, it is also sent as
            ``dimensions`` if `shorten` is True.
        shorten: Ask the server for vectors of `dimension`.
        batch_size: Texts in one request.
        timeout: Seconds for one request.
        retries: How often a failed request is repeated, with growing pauses.
        sleep: Called with the pause in seconds; for tests.

    Raises:
        ConfigError: A base_url that is not http(s).
    """

    def __init__(
        self,
        model: str = "text-embedding-3-small",
        *,
        base_url: str = "https://api.openai.com/v1",
        api_key: str | None = None,
        dimension: int | None = None,
        shorten: bool = False,
        batch_size: int = 256,
        timeout: float = 30.0,
        retries: int = 3,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise ConfigError("base_url has to start with http:// or https://")
        if batch_size < 1:
            raise ConfigError(f"batch_size has to be at least 1, not {batch_size}")
        self._url = base_url.rstrip("/") + "/embeddings"
        self._key = os.environ.get("OPENAI_API_KEY", "") if api_key is None else api_key
        self._model = model
        self._dimension = dimension
        self._shorten = shorten and dimension is not None
        self._batch_size = batch_size
        self._timeout = timeout
        self._retries = retries
        self._sleep = sleep
        self.id = f"openai:{model}" + (f"@{dimension}" if self._shorten else "")

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        if self._dimension is None:
            self._dimension = len(self.embed_query("dimension"))
        return self._dimension

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts, in order, in as many requests as needed."""
        vectors: list[Sequence[float]] = []
        for start in range(0, len(texts), self._batch_size):
            vectors += self._ask(list(texts[start : start + self._batch_size]))
        return vectors

    def embed_query(self, text: str) -> Sequence[float]:
        """The vector of a question."""
        return self._ask([text])[0]

    def _ask(self, texts: list[str]) -> list[Sequence[float]]:
        body: dict[str, Any] = {"model": self._model, "input": texts, "encoding_format": "float"}
        if self._shorten:
            body["dimensions"] = self._dimension
        answer = self._send(json.dumps(body).encode())
        try:
            rows = sorted(json.loads(answer)["data"], key=lambda row: row["index"])
            vectors: list[Sequence[float]] = [row["embedding"] for row in rows]
        except (ValueError, KeyError, TypeError) as error:
            raise EmbedderError(f"{self._url} did not answer in OpenAI's embedding format") from error
        if len(vectors) != len(texts):
            raise EmbedderError(f"{self._url} returned {len(vectors)} vectors for {len(texts)} texts")
        return vectors

    def _send(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        request = urllib.request.Request(self._url, body, headers)  # noqa: S310 - http(s) is checked above
        for attempt in range(self._retries + 1):
            try:
                with urllib.request.urlopen(request, timeout=self._timeout) as response:  # noqa: S310 - as above
                    answer: bytes = response.read()
                    return answer
            except urllib.error.HTTPError as error:
                error.close()
                if error.code not in _AGAIN or attempt == self._retries:
                    raise EmbedderError(f"{self._url} refused with HTTP {error.code}") from error
            except (urllib.error.URLError, OSError) as error:
                if attempt == self._retries:
                    raise EmbedderError(f"{self._url} cannot be reached: {error}") from error
            self._sleep(0.5 * 2**attempt)
        raise AssertionError("unreachable")
