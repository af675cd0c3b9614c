"""Dates that a text names, in English and Chinese."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jianmu.retrieval.dates import DateMention, date_mentions, date_terms, day_terms


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
