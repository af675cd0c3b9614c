"""A provider on the loopback, and the models that talk to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from jianmu.agents import AnthropicChatModel, ChatModel, OpenAIChatModel
from jianmu.agents.retry import RetryPolicy
from jianmu.testing.provider_server import ProviderServer
from jianmu.testing.provider_wire import ProviderAnswer, ProviderRequest

Brain = Callable[[ProviderRequest], ProviderAnswer]


@pytest.fixture
def serve() -> Iterator[Callable[..., ProviderServer]]:
    """Start servers; they stop with the test."""
    servers: list[ProviderServer] = []

    def start(brain: Brain | ProviderAnswer, **kwargs: object) -> ProviderServer:
        rule = brain if callable(brain) else (lambda _request: brain)
        server = ProviderServer(rule, **kwargs)  # type: ignore[arg-type]
        server.__enter__()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.__exit__(None, None, None)


@pytest.fixture
def waits() -> list[float]:
    """The seconds that the models would have waited before trying again."""
    return []


@pytest.fixture(params=["openai", "anthropic"])
def connect(request: pytest.FixtureRequest, waits: list[float]) -> Callable[..., ChatModel]:
    """Make a model of either provider that talks to a server."""

    async def no_sleep(seconds: float) -> None:
        waits.append(seconds)

    def make(server: ProviderServer, **kwargs: object) -> ChatModel:
        kwargs.setdefault("retry", RetryPolicy(attempts=3, random=lambda: 0.0, sleep=no_sleep))
        kwargs.setdefault("api_key", server.api_key)
        if request.param == "openai":
            return OpenAIChatModel("gpt-test", base_url=server.openai_url, **kwargs)  # type: ignore[arg-type]
        return AnthropicChatModel("claude-test", base_url=server.anthropic_url, **kwargs)  # type: ignore[arg-type]

    return make
