"""Points in time as callers give them, seconds since 1970 inside, aware UTC datetimes when handed out."""

from __future__ import annotations

from datetime import UTC, date, datetime

from jianmu.errors import MemoryInputError

__all__ = ["When", "day_of", "from_seconds", "moment", "to_date", "to_seconds"]

When = datetime | date | float | str
"""An aware datetime, a naive one (taken as UTC), a date (its midnight, UTC), seconds since 1970, or ISO
8601."""


def to_seconds(when: When, name: str = "time") -> float:
    """Seconds since 1970.

    Raises:
        MemoryInputError: `when` is none of the accepted kinds, or no date.
    """
    found = _datetime(when, name)
    return found if isinstance(found, float) else found.timestamp()


def day_of(when: When) -> int:
    """The calendar day as the caller wrote it, as a number like 20230508; "8 May" is compared with it."""
    return moment(when)[1]


def moment(when: When) -> tuple[float, int]:
    """Seconds since 1970 and the calendar day.

    Raises:
        MemoryInputError: As for `to_seconds`.
    """
    found = _datetime(when, "time")
    seconds, calendar = (
        (found, from_seconds(found)) if isinstance(found, float) else (found.timestamp(), found)
    )
    return seconds, calendar.year * 10_000 + calendar.month * 100 + calendar.day


def to_date(day: int) -> date:
    """The reverse of `day_of`."""
    return date(day // 10_000, day // 100 % 100, day % 100)


def from_seconds(seconds: float) -> datetime:
    """An aware datetime in UTC; the first or last there is for a time beyond it, as older files may hold."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return (datetime.max if seconds > 0 else datetime.min).replace(tzinfo=UTC)


def _datetime(when: When, name: str) -> datetime | float:
    if isinstance(when, str):
        try:
            when = datetime.fromisoformat(when.strip())
        except ValueError as error:
            raise MemoryInputError(
                f"{name} is no ISO 8601 date or time, e.g. 2026-12-01T09:30:00Z"
            ) from error
    if isinstance(when, datetime):
        return _in_range(when if when.tzinfo is not None else when.replace(tzinfo=UTC), name)
    if isinstance(when, date):
        return datetime(when.year, when.month, when.day, tzinfo=UTC)
    if not isinstance(when, bool) and isinstance(when, int | float):
        try:
            return datetime.fromtimestamp(float(when), UTC).timestamp()
        except (ValueError, OverflowError, OSError) as error:
            raise MemoryInputError(
                f"{name}={when!r} is out of range: seconds since 1970 are expected"
            ) from error
    raise MemoryInputError(f"{name} is a {type(when).__name__}: give a datetime, seconds or ISO 8601 text")


def _in_range(when: datetime, name: str) -> datetime:
    try:
        when.astimezone(UTC)
    except OverflowError as error:
        raise MemoryInputError(f"{name}={when} is out of range: it has no date in UTC") from error
    return when
