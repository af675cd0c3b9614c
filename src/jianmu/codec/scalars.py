"""The builtin kinds that JSON has no word for: a tag, how to write one, how to read it back.

A tagged form is ``{"~": tag, "v": payload}``; see the table in docs/state.md.
"""

from __future__ import annotations

import ipaddress
import math
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import ByteSize
from pydantic_core import TzInfo

from jianmu.codec.refusal import Refusal

__all__ = ["SCALARS_IN", "SCALARS_OUT", "TAG", "is_url", "url_out"]

TAG = "~"
MAX_INT_BITS = 65_536
"""The widest int that is kept: 19,728 decimal digits."""

Form = dict[str, Any]


def _tagged(tag: str, payload: Any) -> Form:
    return {TAG: tag, "v": payload}


def int_out(value: int) -> int | Form:
    """Write an int: as itself within 64 bits, else in hexadecimal."""
    if -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF:
        return value
    if value.bit_length() > MAX_INT_BITS:
        raise Refusal(f"an int of {value.bit_length():,} bits; the limit is {MAX_INT_BITS:,}")
    return _tagged("int", f"{value:x}")


def int_in(payload: Any) -> int:
    """Read an int of either form."""
    if type(payload) is int:
        return payload
    text = _text(payload["v"] if isinstance(payload, dict) else payload)
    if len(text) > MAX_INT_BITS // 4 + 1:
        raise Refusal(f"an int wider than {MAX_INT_BITS:,} bits")
    return int(text, 16)


def float_out(value: float) -> float | Form:
    """Write a float; what JSON or a database would lose (NaN, infinities, -0.0) by name."""
    if value - value == 0.0 and (value or math.copysign(1.0, value) > 0):
        return value
    return _tagged("float", repr(value))


def str_out(value: str) -> str | Form:
    """Write a str; one with lone surrogates, which UTF-8 has no bytes for, in ASCII escapes."""
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return _tagged("str", value.encode("unicode_escape").decode("ascii"))
    return value


def _zone_out(form: Form, zone: tzinfo | None) -> Form:
    """Add what the offset in the text does not say; `timezone` without a name says all there."""
    kind = type(zone)
    if zone is None:
        return form
    if isinstance(zone, timezone):
        offset = zone.utcoffset(None)
        if offset.microseconds:  # fromisoformat reads an offset below a second as UTC
            form["offset"] = offset // timedelta(microseconds=1)
        if zone.tzname(None) != timezone(offset).tzname(None):
            form["name"] = str_out(zone.tzname(None))
    elif isinstance(zone, ZoneInfo) and kind is ZoneInfo and zone.key is not None:
        form["zone"] = zone.key
    elif kind is TzInfo:
        form["by"] = "pydantic"
    else:
        raise Refusal(
            f"a time zone of type {kind.__module__}.{kind.__qualname__}; "
            "use zoneinfo.ZoneInfo(key) or datetime.timezone"
        )
    return form


def _zone_in(form: Form, parsed: tzinfo | None) -> tzinfo | None:
    if "zone" in form:
        return ZoneInfo(_text(form["zone"]))
    if parsed is None:
        return None
    offset = timedelta(microseconds=_int(form["offset"])) if "offset" in form else parsed.utcoffset(None)
    if offset is None:
        raise ValueError("an offset is missing")
    if "name" in form:
        return timezone(offset, str_in(form["name"]))
    if "by" in form:
        return TzInfo(offset.total_seconds())
    return timezone(offset)


def str_in(payload: Any) -> str:
    """Read a str of either form."""
    if type(payload) is str:
        return payload
    return _text(payload["v"]).encode("ascii").decode("unicode_escape")


def _datetime_out(value: datetime) -> Form:
    if value.tzinfo is not None and value.utcoffset() is None:
        raise Refusal("a datetime whose time zone gives no offset")
    return _zone_out(_fold(_tagged("datetime", value.isoformat()), value), value.tzinfo)


def _datetime_in(form: Form) -> datetime:
    value = datetime.fromisoformat(_text(form["v"]))
    return value.replace(tzinfo=_zone_in(form, value.tzinfo), fold=_fold_in(form))


def _time_out(value: time) -> Form:
    # A ZoneInfo has no offset without a date; isoformat then leaves it out and the key alone says it.
    return _zone_out(_fold(_tagged("time", value.isoformat()), value), value.tzinfo)


def _time_in(form: Form) -> time:
    value = time.fromisoformat(_text(form["v"]))
    return value.replace(tzinfo=_zone_in(form, value.tzinfo), fold=_fold_in(form))


def _fold(form: Form, value: datetime | time) -> Form:
    if value.fold:
        form["fold"] = 1
    return form


def _fold_in(form: Form) -> int:
    return 1 if form.get("fold") else 0


def _timedelta_in(form: Form) -> timedelta:
    days, seconds, micros = (_int(part) for part in form["v"])
    return timedelta(days, seconds, micros)


def _range_in(form: Form) -> range:
    start, stop, step = (int_in(part) for part in form["v"])
    return range(start, stop, step)


def _fraction_in(form: Form) -> Fraction:
    above, below = (int_in(part) for part in form["v"])
    return Fraction(above, below)


def _complex_in(form: Form) -> complex:
    real, imag = (_float_in(part) for part in form["v"])
    return complex(real, imag)


def _float_in(payload: Any) -> float:
    if type(payload) is float:
        return payload
    return float(_text(payload["v"]))


def is_url(cls: type) -> bool:
    """Whether `cls` is one of pydantic's own URL types."""
    return cls.__module__ == "pydantic.networks" and hasattr(cls, "scheme")


def url_out(value: Any) -> Form:
    """Write one of pydantic's URL types (``HttpUrl``, ``PostgresDsn``, ...)."""
    return {TAG: "url", "of": type(value).__name__, "v": str(value)}


def _url_in(form: Form) -> Any:
    from pydantic import networks  # loaded by a schema that has URLs; others need not pay for it

    cls: Any = getattr(networks, _text(form["of"]), None)
    if not isinstance(cls, type) or not is_url(cls):
        raise TypeError("no URL type")
    return cls(_text(form["v"]))


def _text(payload: Any) -> str:
    if type(payload) is not str:
        raise TypeError("text was expected")
    return payload


def _int(payload: Any) -> int:
    if type(payload) is not int:
        raise TypeError("an int was expected")
    return payload


def _b64(payload: Any) -> bytes:
    return b64decode(_text(payload), validate=True)


def _writer(tag: str, payload_of: Callable[[Any], Any]) -> Callable[[Any], Form]:
    return lambda value: {TAG: tag, "v": payload_of(value)}


def _path_text(value: Any) -> Any:
    return str_out(str(value))


SCALARS_OUT: dict[type, Callable[[Any], Any]] = {
    type(None): lambda value: value,
    bool: lambda value: value,
    int: int_out,
    float: float_out,
    str: str_out,
    bytes: _writer("bytes", lambda value: b64encode(value).decode("ascii")),
    bytearray: _writer("bytearray", lambda value: b64encode(value).decode("ascii")),
    complex: _writer("complex", lambda value: [float_out(value.real), float_out(value.imag)]),
    Decimal: _writer("decimal", str),
    Fraction: _writer("fraction", lambda value: [int_out(value.numerator), int_out(value.denominator)]),
    range: _writer("range", lambda value: [int_out(value.start), int_out(value.stop), int_out(value.step)]),
    datetime: _datetime_out,
    date: _writer("date", lambda value: value.isoformat()),
    time: _time_out,
    timedelta: _writer("timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
    UUID: _writer("uuid", str),
    PosixPath: _writer("path", _path_text),
    WindowsPath: _writer("path", _path_text),
    PurePosixPath: _writer("posixpath", _path_text),
    PureWindowsPath: _writer("windowspath", _path_text),
    ipaddress.IPv4Address: _writer("ipv4", str),
    ipaddress.IPv6Address: _writer("ipv6", str),
    ipaddress.IPv4Network: _writer("ipv4network", str),
    ipaddress.IPv6Network: _writer("ipv6network", str),
    ipaddress.IPv4Interface: _writer("ipv4interface", str),
    ipaddress.IPv6Interface: _writer("ipv6interface", str),
    ByteSize: _writer("bytesize", lambda value: int_out(int(value))),
}
"""How each builtin scalar is written, by its exact type."""

SCALARS_IN: dict[str, Callable[[Form], Any]] = {
    "int": int_in,
    "float": _float_in,
    "str": str_in,
    "bytes": lambda form: _b64(form["v"]),
    "bytearray": lambda form: bytearray(_b64(form["v"])),
    "complex": _complex_in,
    "decimal": lambda form: Decimal(_text(form["v"])),
    "fraction": _fraction_in,
    "range": _range_in,
    "datetime": _datetime_in,
    "date": lambda form: date.fromisoformat(_text(form["v"])),
    "time": _time_in,
    "timedelta": _timedelta_in,
    "uuid": lambda form: UUID(_text(form["v"])),
    "path": lambda form: Path(str_in(form["v"])),
    "posixpath": lambda form: PurePosixPath(str_in(form["v"])),
    "windowspath": lambda form: PureWindowsPath(str_in(form["v"])),
    "ipv4": lambda form: ipaddress.IPv4Address(_text(form["v"])),
    "ipv6": lambda form: ipaddress.IPv6Address(_text(form["v"])),
    "ipv4network": lambda form: ipaddress.IPv4Network(_text(form["v"])),
    "ipv6network": lambda form: ipaddress.IPv6Network(_text(form["v"])),
    "ipv4interface": lambda form: ipaddress.IPv4Interface(_text(form["v"])),
    "ipv6interface": lambda form: ipaddress.IPv6Interface(_text(form["v"])),
    "bytesize": lambda form: ByteSize(int_in(form["v"])),
    "url": _url_in,
}
"""How each tag of a scalar is read; a malformed form raises any of the usual errors of its constructor."""
