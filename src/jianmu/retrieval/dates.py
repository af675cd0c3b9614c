"""Days, months and years that a text names, in English and Chinese."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import date

__all__ = ["DateMention", "date_mentions", "date_terms", "day_terms"]

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul",
            "august aug", "september sept sep", "october oct", "november nov", "december dec",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_STARTS = tuple(sorted({name[:3] for name in _MONTHS}))
_MONTH = "(?P<month>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\.?"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_CN_DIGITS = {c: n for n, c in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2}
_CN = "[〇零一二三四五六七八九十]"
_END = r"(?![\w])"
_HINTS = re.compile(r"[\d月年]")
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?<!\d){_YEAR}\s*[-/.]\s*(?P<month>[01]?\d)\s*[-/.]\s*(?P<day>[0-3]?\d)(?!\d)",
        rf"(?:(?P<year>(?:19|20)\d\d|{_CN}{{4}})\s*年\s*)?(?P<month>[01]?\d|{_CN}{{1,2}})\s*月\s*"
        rf"(?P<day>[0-3]?\d|{_CN}{{1,3}})\s*[日号號]",
        rf"(?P<year>(?:19|20)\d\d|{_CN}{{4}})\s*年\s*(?:(?P<month>[01]?\d|{_CN}{{1,2}})\s*月)?",
        rf"(?<!\d)(?P<month>[01]?\d|{_CN}{{1,2}})\s*月份?(?!\d)",
        rf"\b{_MONTH}\s+{_DAY}{_END}(?:\s*,?\s*(?:of\s+)?{_YEAR}{_END})?",
        rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}{_END}(?:\s*,?\s*(?:of\s+)?{_YEAR}{_END})?",
        rf"\b{_MONTH}\s*,?\s+(?:of\s+)?{_YEAR}{_END}",
        rf"(?<!\d)(?P<month>[01]?\d)/(?P<day>[0-3]?\d)/{_YEAR}{_END}",
        rf"\b(?:in|of|since|until|during|last|this|next|early|late|mid)[\s-]+{_MONTH}{_END}",
        rf"\b(?P<month>january|february|april|june|july|august|september|october|november|december){_END}",
        rf"(?<![\d.$-]){_YEAR}(?![\d.]|-\d)",
    )
)


@dataclass(frozen=True, slots=True)
class DateMention:
    """What a text says about a date; None where it says nothing, e.g. "4月27号" has no year."""

    year: int | None = None
    month: int | None = None
    day: int | None = None

    def fits(self, when: date) -> bool:
        """Whether `when` agrees with all that is said."""
        return (
            self.year in (None, when.year)
            and self.month in (None, when.month)
            and self.day in (None, when.day)
        )


@dataclass(frozen=True, slots=True)
class DateSpan:
    """Days in a row, e.g. a week."""

    first: date
    last: date

    def fits(self, when: date) -> bool:
        """Whether `when` is one of the days."""
        return self.first <= when <= self.last


def date_mentions(text: str) -> list[DateMention]:
    """The dates that `text` names, most specific reading of each place, no duplicates."""
    text = unicodedata.normalize("NFKC", text)
    if not _HINTS.search(text):  # every pattern needs one of these, or the name of a month
        lower = text.lower()
        if not any(name in lower for name in _STARTS):
            return []
    taken: list[tuple[int, int]] = []
    found: dict[DateMention, None] = {}
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            if any(match.start() < end and start < match.end() for start, end in taken):
                continue
            mention = _mention(match)
            if mention is not None:
                taken.append(match.span())
                found[mention] = None
    return list(found)


def date_terms(mention: DateMention | DateSpan | date) -> list[str]:
    """Terms for the word index; no text can contain them by itself, and a span has none."""
    if isinstance(mention, DateSpan):
        return []
    parts = (("y", mention.year), ("m", mention.month), ("d", mention.day))
    return [f"\x01{name}{number}" for name, number in parts if number is not None]


def day_terms(day: int) -> list[str]:
    """`date_terms` of a day like 20230508."""
    return [f"\x01y{day // 10_000}", f"\x01m{day // 100 % 100}", f"\x01d{day % 100}"]


def _mention(match: re.Match[str]) -> DateMention | None:
    groups = match.groupdict()
    year, month, day = (_number(groups.get(name)) for name in ("year", "month", "day"))
    if year is None and month is None:
        return None
    if month is not None and not 1 <= month <= 12:
        return None
    if day is not None and not 1 <= day <= 31:
        return None
    return DateMention(year, month, day)


def _number(word: str | None) -> int | None:
    if word is None:
        return None
    if word.isascii() and word.isdigit():
        return int(word)
    if word.casefold() in _MONTHS:
        return _MONTHS[word.casefold()]
    return _chinese_number(word)


def _chinese_number(word: str) -> int | None:
    """二〇二三 digit by digit, 二十三 by its ten."""
    if "十" not in word:
        digits = [_CN_DIGITS[c] for c in word if c in _CN_DIGITS]
        return int("".join(map(str, digits))) if digits and len(digits) == len(word) else None
    tens, _, ones = word.partition("十")
    if "十" in ones or len(tens) > 1 or len(ones) > 1:
        return None
    return (_CN_DIGITS[tens] if tens else 1) * 10 + (_CN_DIGITS[ones] if ones else 0)
