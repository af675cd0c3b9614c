"""Dates that a text names, in English and Chinese."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jianmu.retrieval.dates import DateMention, date_mentions, date_terms, day_terms
from jianmu.retrieval.relative_dates import relative_dates


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4月27号我说过什么", DateMention(None, 4, 27)),
        ("2023-05-02", DateMention(2023, 5, 2)),
        ("On May 2nd, 2023", DateMention(2023, 5, 2)),
        ("on 8 May", DateMention(None, 5, 8)),
        ("in May 2023", DateMention(2023, 5, None)),
        ("二〇二三年五月三日", DateMention(2023, 5, 3)),
        ("十二月二十五号", DateMention(None, 12, 25)),
        ("What happened in 2022?", DateMention(2022, None, None)),
        ("April 27th", DateMention(None, 4, 27)),
    ],
)
def test_a_date_is_read(text: str, expected: DateMention) -> None:
    assert date_mentions(text) == [expected]


@pytest.mark.parametrize("text", ["she may go", "I had 5 apples", "version 3.10", "call 2023-99-99", ""])
def test_what_is_no_date_is_none(text: str) -> None:
    assert all(mention.month is None for mention in date_mentions(text))


@given(st.dates())
def test_a_written_day_fits_itself_and_no_other(day: date) -> None:
    if not 1900 <= day.year <= 2099:
        return
    for text in (day.isoformat(), f"{day.year}年{day.month}月{day.day}日", f"{day:%B} {day.day}, {day.year}"):
        (mention,) = date_mentions(text)
        assert mention.fits(day)
        assert not mention.fits(date(day.year, day.month, 1 if day.day != 1 else 2))


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    for mention in date_mentions(text):
        assert date_terms(mention)


def test_a_day_as_a_number_gives_the_terms_of_its_date() -> None:
    assert day_terms(20230508) == date_terms(date(2023, 5, 8))


TODAY = date(2023, 5, 17)  # a Wednesday


@pytest.mark.parametrize(
    ("text", "fitting", "other"),
    [
        ("what did we do last Friday?", [date(2023, 5, 12)], date(2023, 5, 5)),
        ("last Monday", [date(2023, 5, 15), date(2023, 5, 8)], date(2023, 5, 16)),
        ("上周五我说了什么", [date(2023, 5, 12)], date(2023, 5, 5)),
        ("上週五", [date(2023, 5, 12)], date(2023, 5, 19)),
        ("上个星期天", [date(2023, 5, 14)], date(2023, 5, 7)),
        ("上上周一", [date(2023, 5, 1)], date(2023, 5, 8)),
        ("这周一", [date(2023, 5, 15)], date(2023, 5, 8)),
        ("上周", [date(2023, 5, 8), date(2023, 5, 14)], date(2023, 5, 15)),
        ("last week", [date(2023, 5, 8), date(2023, 5, 14)], date(2023, 5, 7)),
        ("yesterday evening", [date(2023, 5, 16)], date(2023, 5, 15)),
        ("the day before yesterday", [date(2023, 5, 15)], date(2023, 5, 16)),
        ("昨天", [date(2023, 5, 16)], date(2023, 5, 17)),
        ("大前天", [date(2023, 5, 14)], date(2023, 5, 15)),
        ("three days ago", [date(2023, 5, 14)], date(2023, 5, 13)),
        ("三天前", [date(2023, 5, 14)], date(2023, 5, 13)),
        ("两个月前", [date(2023, 3, 2)], date(2023, 2, 2)),
        ("2 weeks ago", [date(2023, 5, 3)], date(2023, 5, 9)),
        ("last month", [date(2023, 4, 30)], date(2023, 5, 1)),
        ("上个月", [date(2023, 4, 1)], date(2022, 4, 1)),
        ("去年", [date(2022, 7, 1)], date(2023, 1, 1)),
        ("3 years ago", [date(2020, 1, 1)], date(2021, 1, 1)),
    ],
)
def test_a_date_told_from_today_is_read(text: str, fitting: list[date], other: date) -> None:
    mentions = relative_dates(text, TODAY)
    for day in fitting:
        assert any(mention.fits(day) for mention in mentions)
    assert not any(mention.fits(other) for mention in mentions)


@given(st.text(), st.dates(date(1900, 1, 1)))
def test_any_text_is_read_on_any_day(text: str, today: date) -> None:
    for mention in relative_dates(text + " 3 weeks ago 上周日 last sunday 十年前", today):
        date_terms(mention)


@pytest.mark.parametrize("text", ["", "they go today's way", "5月前", "the last straw", "一周一次"])
def test_what_is_no_distance_from_today_is_none(text: str) -> None:
    assert relative_dates(text.replace("today", "day"), TODAY) == []
