"""Settings of a project: which checkpoint back end, and how often, from code, ``jianmu.toml`` or environment.

``jianmu.toml``::

    [checkpoint]
    enabled = true
    backend = "sqlite"
    path = "state/checkpoints.db"

The same from the environment, which wins: ``JIANMU_CHECKPOINT_BACKEND=sqlite`` and so on.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from jianmu.errors import ConfigError

__all__ = ["BACKENDS", "DURABILITIES", "RuntimeCheckpointConfig"]

BACKENDS = ("file", "memory", "null", "sqlite", "postgres")
DURABILITIES = ("fsync", "flush")

_PROJECT_FILE = "jianmu.toml"
_TABLE = "checkpoint"
_PREFIX = "JIANMU_CHECKPOINT_"
_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"0", "false", "no", "off"})


@dataclass(frozen=True)
class RuntimeCheckpointConfig:
    """Whether and how a runner checkpoints when it is given no checkpointer.

    Attributes:
        enabled: Make a checkpointer when none is passed to `run`.
        backend: One of `BACKENDS`.
        interval: Save every so many ticks, 1 or more.
        path: Folder of "file", file of "sqlite"; None is their default below ``.outputs/jianmu``.
        dsn: Connection string of "postgres", which needs one.
        durability: "fsync" or "flush", for "file" and "sqlite".
        history: Steps that "memory" keeps of each thread, 1 or more.

    Raises:
        ConfigError: A value that cannot be used; the message names the setting and what it may be.
    """

    enabled: bool = False
    backend: str = "file"
    interval: int = 1
    path: str | Path | None = None
    dsn: str | None = field(default=None, repr=False)
    durability: str = "fsync"
    history: int = 100

    def __post_init__(self) -> None:
        for setting in fields(self):
            _check(setting.name, getattr(self, setting.name), setting.name)

    @classmethod
    def load(
        cls, path: str | Path | None = None, *, env: Mapping[str, str] | None = None
    ) -> RuntimeCheckpointConfig:
        """Read the settings of a project: the environment before ``jianmu.toml`` before the defaults.

        Args:
            path: The file; None is ``jianmu.toml`` in the current folder, if there is one.
            env: The environment; None is that of the process.

        Raises:
            ConfigError: No such file, no TOML, an unknown setting, or a value that cannot be used.
        """
        settings = {**_from_file(path), **_from_env(os.environ if env is None else env)}
        return cls(**settings)


def _from_file(path: str | Path | None) -> dict[str, Any]:
    file = Path(_PROJECT_FILE if path is None else path)
    try:
        table = tomllib.loads(file.read_text("utf-8")).get(_TABLE, {})
    except FileNotFoundError:
        if path is None:
            return {}
        raise ConfigError(f"there is no {file}; make one with a [{_TABLE}] table, or pass no path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not TOML: {error}") from error
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror or error}") from error
    if not isinstance(table, dict):
        raise ConfigError(f"{file}: {_TABLE} must be a table, not {type(table).__name__}")
    for key, value in table.items():
        _check(_known(key, f"{file}: {_TABLE}.{key}"), value, f"{file}: {_TABLE}.{key}")
    return table


def _from_env(env: Mapping[str, str]) -> dict[str, Any]:
    settings = {}
    for name, text in env.items():
        if name.startswith(_PREFIX):
            key = _known(name.removeprefix(_PREFIX).lower(), name)
            settings[key] = _parse(key, text, name)
            _check(key, settings[key], name)
    return settings


def _known(key: str, name: str) -> str:
    known = [setting.name for setting in fields(RuntimeCheckpointConfig)]
    if key not in known:
        raise ConfigError(f"{name} is no setting; there are {', '.join(known)}")
    return key


def _parse(key: str, text: str, name: str) -> object:
    if key == "enabled":
        if text.lower() in _YES | _NO:
            return text.lower() in _YES
        raise ConfigError(f"{name} must be true or false, not {text!r}")
    if key in ("interval", "history"):
        try:
            return int(text)
        except ValueError:
            raise ConfigError(f"{name} must be a whole number, not {text!r}") from None
    return text


def _check(key: str, value: object, name: str) -> None:
    allowed, is_allowed = _RULES[key]
    if not is_allowed(value):
        shown = type(value).__name__ if key == "dsn" else repr(value)
        raise ConfigError(f"{name} must be {allowed}, not {shown}")


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 1


def _one_of(names: tuple[str, ...]) -> tuple[str, Callable[[object], bool]]:
    return "one of " + ", ".join(f'"{name}"' for name in names), lambda value: value in names


_RULES: dict[str, tuple[str, Callable[[object], bool]]] = {
    "enabled": ("true or false", lambda value: isinstance(value, bool)),
    "backend": _one_of(BACKENDS),
    "interval": ("a whole number of 1 or more", _is_count),
    "path": ("a path", lambda value: value is None or (isinstance(value, str | Path) and str(value) != "")),
    "dsn": ("a connection string", lambda value: value is None or (isinstance(value, str) and value != "")),
    "durability": _one_of(DURABILITIES),
    "history": ("a whole number of 1 or more", _is_count),
}
