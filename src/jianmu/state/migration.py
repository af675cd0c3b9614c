"""From a dump of an older schema version to the present one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jianmu.errors import ConfigError, StateVersionError

__all__ = ["VERSION_KEY", "Migration", "check_migrations", "migrate", "stored_version"]

VERSION_KEY = "~version"
"""The reserved key of a state dump; no field can have this name."""

Migration = Callable[[dict[str, Any]], dict[str, Any]]


def check_migrations(version: int, migrations: Mapping[int, Migration] | None) -> dict[int, Migration]:
    """Return the migrations as a dict.

    Raises:
        ConfigError: The version is no positive int, or a migration starts at or above it.
    """
    if type(version) is not int or version < 1:
        raise ConfigError(f"a schema version is a positive int, not {version!r}")
    found = dict(migrations or {})
    for start, function in found.items():
        if type(start) is not int or not 1 <= start < version:
            raise ConfigError(f"a migration from version {start!r} does not lead to version {version}")
        if not callable(function):
            raise ConfigError(f"the migration from version {start} is no function")
    return found


def stored_version(dump: Mapping[str, Any], current: int) -> int:
    """Return the version of a dump.

    Raises:
        StateVersionError: It is newer than `current`, or no version at all.
    """
    version = dump[VERSION_KEY]
    if type(version) is not int or version < 1:
        raise StateVersionError(f"the stored state's version is {version!r}, which is no version")
    if version > current:
        raise StateVersionError(
            f"the stored state is of schema version {version} and this program's is {current}; "
            "run the newer program"
        )
    return version


def migrate(
    fields: dict[str, Any], version: int, current: int, migrations: Mapping[int, Migration]
) -> dict[str, Any]:
    """Return `fields`, brought from `version` to `current` one step at a time.

    Raises:
        StateVersionError: A step is missing, or its function failed.
    """
    for step in range(version, current):
        function = migrations.get(step)
        if function is None:
            raise StateVersionError(
                f"the stored state is of schema version {version} and no migration leads on from {step}; "
                f"pass migrations={{{step}: function}}"
            )
        try:
            moved = function(fields)
        except Exception as error:  # a user's function may raise anything
            raise StateVersionError(
                f"the migration from version {step} failed: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(moved, dict):
            raise StateVersionError(
                f"the migration from version {step} returned a {type(moved).__name__}, not a dict"
            )
        fields = moved
    return fields
