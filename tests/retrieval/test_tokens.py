"""Texts become terms by one rule, whatever the script."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jianmu.retrieval.tokens import Analyzer

ANALYZER = Analyzer()


def names(text: str) -> list[str]:
    return [term.text for term in ANALYZER.terms(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUserById", {"getuserbyid", "get", "user", "by", "id"}),
        ("OPENAI_API_KEY", {"openaiapikey", "openai", "api", "key"}),
        ("openai-api-key", {"openaiapikey", "openai", "api", "key"}),
        ("3.10", {"3.10", "3", "10"}),
        ("E1234", {"e1234"}),
        ("精排", {"精", "排", "精排"}),
        ("끝말", {"끝", "말", "끝말"}),
        ("Café", {"cafe"}),
        ("ＲＥＲＡＮＫ", {"rerank"}),
        ("bugs", {"bug"}),
        ("🙂", {"🙂"}),
    ],
)
def test_a_word_is_known_whole_and_in_parts(text: str, expected: set[str]) -> None:
    assert set(names(text)) == expected


def test_a_question_loses_its_stop_words_unless_it_has_nothing_else() -> None:
    assert set(ANALYZER.query_terms("where is the cat")) == {"cat"}
    assert set(ANALYZER.query_terms("to be or not to be")) == {"to", "be", "or", "not"}


def test_the_surface_form_tells_news_from_new() -> None:
    (news,), (new,) = ANALYZER.terms("news"), ANALYZER.terms("new")
    assert news.text != new.text
    (organs,), (organ,) = ANALYZER.terms("organs"), ANALYZER.terms("organ")
    assert organs.text == organ.text
    assert organs.form != organ.form


@given(st.text())
def test_any_text_is_split_alike_each_time_into_bounded_terms(text: str) -> None:
    first = ANALYZER.terms(text)
    assert first == Analyzer().terms(text)
    assert all(0 < len(term.text) <= 200 for term in first)
    assert all(term.form in {1 << bit for bit in range(8)} for term in first)


@given(st.text(alphabet="abcdefghij ", min_size=1))
def test_case_and_width_mean_nothing_to_plain_words(text: str) -> None:
    assert names(text) == names(text.upper())
