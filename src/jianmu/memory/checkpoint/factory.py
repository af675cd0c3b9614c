"""A checkpointer by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

from jianmu.errors import ConfigError
from jianmu.memory.checkpoint.base import CheckpointerProtocol
from jianmu.project import RuntimeCheckpointConfig

__all__ = ["create_checkpointer"]

_SQLITE_PATH = ".outputs/jianmu/checkpoints.db"


def create_checkpointer(config: RuntimeCheckpointConfig | None = None) -> CheckpointerProtocol:
    """Return the checkpointer that `config` (None = `RuntimeCheckpointConfig.load()`) describes.

    `config.enabled` is for the runner and is not looked at.

    Raises:
        ConfigError: A setting that the back end needs is missing.
        MissingExtraError: The back end needs an optional package.
    """
    config = RuntimeCheckpointConfig.load() if config is None else config
    return _MAKERS[config.backend](config)


def _file(config: RuntimeCheckpointConfig) -> CheckpointerProtocol:
    options: dict[str, Any] = {} if config.path is None else {"root": config.path}
    return _back_end("file", "FileCheckpointer", durability=config.durability, **options)


def _memory(config: RuntimeCheckpointConfig) -> CheckpointerProtocol:
    return _back_end("in_memory", "InMemoryCheckpointer", history=config.history)


def _null(config: RuntimeCheckpointConfig) -> CheckpointerProtocol:
    return _back_end("null", "NullCheckpointer")


def _sqlite(config: RuntimeCheckpointConfig) -> CheckpointerProtocol:
    path = _SQLITE_PATH if config.path is None else config.path
    return _back_end("sqlite", "SqliteCheckpointer", path, durability=config.durability)


def _postgres(config: RuntimeCheckpointConfig) -> CheckpointerProtocol:
    if config.dsn is None:
        raise ConfigError(
            'backend "postgres" needs the setting dsn (or JIANMU_CHECKPOINT_DSN), such as '
            "postgresql://user@host/database"
        )
    return _back_end("postgres", "PostgresCheckpointer", config.dsn)


def _back_end(module: str, name: str, *args: object, **options: object) -> CheckpointerProtocol:
    """Import a back end only when it is chosen, with the packages that it needs."""
    home = import_module(f"jianmu.memory.checkpoint.{module}")
    return cast(CheckpointerProtocol, getattr(home, name)(*args, **options))


_MAKERS: dict[str, Callable[[RuntimeCheckpointConfig], CheckpointerProtocol]] = {
    "file": _file,
    "memory": _memory,
    "null": _null,
    "sqlite": _sqlite,
    "postgres": _postgres,
}
