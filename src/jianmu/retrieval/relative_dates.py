"""Days, weeks, months and years told from today: "last Friday", "3 days ago", "上周五", "去年"."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from datetime import date, timedelta

from jianmu.retrieval.dates import DateMention, DateSpan

__all__ = ["relative_dates"]

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
_CHINESE = {
    "一": 1,
    "二": 2,
    "两": 2,
    "兩": 2,
    "三": 3,
    "四": 4,
    "五": 5,
    "六": 6,
    "七": 7,
    "八": 8,
    "九": 9,
    "十": 10,
}
_CHINESE_DAYS = {"一": 0, "二": 1, "三": 2, "四": 3, "五": 4, "六": 5, "日": 6, "天": 6}
_WEEK = "(?:周|週|星期|礼拜|禮拜)"
_COUNT = r"(?P<count>\d{1,3}|[一二两兩三四五六七八九十])"
_AGO = r"\b(?P<count>\d{1,3}|an?|one|two|three|four|five|six|seven)\s+(?P<unit>day|week|month|year)s?\s+ago\b"

Found = Iterator[DateMention | DateSpan]


def relative_dates(text: str, today: date) -> list[DateMention | DateSpan]:
    """What `text` names by its distance from `today`, no duplicates.

    "Last Friday" in English is the Friday before today, and the one in the week before if that is another;
    上周五 is the Friday of the week before, weeks beginning on Monday.
    """
    text = unicodedata.normalize("NFKC", text)
    found: dict[DateMention | DateSpan, None] = {}
    for pattern, read in _PATTERNS:
        for match in pattern.finditer(text):
            found.update(dict.fromkeys(read(match, today)))
    return list(found)


def _day(when: date) -> DateMention:
    return DateMention(when.year, when.month, when.day)


def _shifted(days: int) -> Callable[[re.Match[str], date], Found]:
    return lambda match, today: iter([_day(today + timedelta(days))])


def _months_before(today: date, count: int) -> DateMention:
    months = today.year * 12 + today.month - 1 - count
    return DateMention(months // 12, months % 12 + 1)


def _week(today: date, before: int) -> DateSpan:
    monday = today - timedelta(today.weekday() + 7 * before)
    return DateSpan(monday, monday + timedelta(6))


def _ago(match: re.Match[str], today: date) -> Found:
    written = match["count"].casefold()
    count = int(written) if written.isdigit() else _NUMBERS.get(written) or _CHINESE[written]
    unit = match["unit"].casefold()
    if unit in ("day", "天", "日"):
        yield _day(today - timedelta(count))
    elif unit in ("week", "周", "週", "星期", "礼拜", "禮拜"):
        yield _week(today, count)
    elif unit in ("month", "月"):
        yield _months_before(today, count)
    else:
        yield DateMention(today.year - count)


def _last_day_of_week(match: re.Match[str], today: date) -> Found:
    wanted = next(n for n, name in enumerate(_DAYS) if name.startswith(match["day"].casefold()[:3]))
    nearest = today - timedelta((today.weekday() - wanted - 1) % 7 + 1)
    yield _day(nearest)
    yield _day(today - timedelta(today.weekday() + 7 - wanted))


def _last_period(match: re.Match[str], today: date) -> Found:
    before = 1 if match["which"].casefold() in ("last", "past", "previous") else 0
    unit = match["unit"].casefold()
    if unit == "week":
        yield _week(today, before)
    elif unit == "month":
        yield _months_before(today, before)
    else:
        yield DateMention(today.year - before)


def _chinese_week(match: re.Match[str], today: date) -> Found:
    before = {"上上": 2, "上": 1}.get(match["which"], 0)
    day = match["day"]
    week = _week(today, before)
    yield week if not day else _day(week.first + timedelta(_CHINESE_DAYS[day]))


_PATTERNS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], Found]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), read)
    for pattern, read in (
        (r"\btoday\b|今天|今日", _shifted(0)),
        (r"(?<!before )\byesterday\b|昨天|昨日|昨晚", _shifted(-1)),
        (r"\bday before yesterday\b|(?<!大)前天|(?<!大)前日", _shifted(-2)),
        (r"大前天", _shifted(-3)),
        (_AGO, _ago),
        (rf"{_COUNT}\s*(?P<unit>天|日|年|{_WEEK})(?:之|以)?前", _ago),
        (rf"{_COUNT}\s*[个個](?P<unit>月|{_WEEK})(?:之|以)?前", _ago),
        (rf"\b(?:last|past|previous)\s+(?P<day>{'|'.join(_DAYS)})\b", _last_day_of_week),
        (r"\b(?P<which>last|past|previous|this)\s+(?P<unit>week|month|year)\b", _last_period),
        (rf"(?P<which>上上|上|这|這|本)个?個?{_WEEK}(?P<day>[一二三四五六日天])?", _chinese_week),
        (r"上个?個?月(?!\d)", lambda match, today: iter([_months_before(today, 1)])),
        (r"(?:这|這)个?個?月|本月", lambda match, today: iter([_months_before(today, 0)])),
        (r"去年", lambda match, today: iter([DateMention(today.year - 1)])),
        (r"前年", lambda match, today: iter([DateMention(today.year - 2)])),
        (r"今年", lambda match, today: iter([DateMention(today.year)])),
    )
)
