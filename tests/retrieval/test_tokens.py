"""Texts become terms by one rule, whatever the script."""

import random
from collections import Counter

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


def test_stems_in_c_and_in_python_are_the_same() -> None:
    stemmer = pytest.importorskip("Stemmer")
    from snowballstemmer.english_stemmer import EnglishStemmer

    in_c, in_python = stemmer.Stemmer("english", 0), EnglishStemmer()
    chance = random.Random(3)
    endings = [
        "ing",
        "ed",
        "ies",
        "ness",
        "ational",
        "fulli",
        "ousness",
        "iveness",
        "li",
        "logi",
        "ement",
        "ance",
        "s",
        "ss",
        "sses",
        "eed",
        "ingly",
        "y",
        "ity",
    ]
    for _ in range(20_000):
        word = "".join(chance.choices("aeiouybcdlnrstvwx", k=chance.randint(1, 8))) + chance.choice(endings)
        assert in_c.stemWord(word) == in_python.stemWord(word), word


@given(st.text(st.characters(max_codepoint=127), max_size=80))
def test_plain_ascii_is_split_by_the_same_rule_as_all_else(text: str) -> None:
    """A character of another script at the end takes the other path, and adds a term of its own only."""
    analyzer = Analyzer()
    whole = analyzer.terms(text + " 猫")
    assert analyzer.terms(text) == whole[:-1]


@given(st.text(max_size=80))
def test_a_tally_counts_the_terms(text: str) -> None:
    analyzer = Analyzer()
    counts, forms, length = analyzer.tally(text)
    terms = analyzer.terms(text)
    assert counts == Counter(term.text for term in terms)
    assert length == analyzer.length(terms)
    assert set(forms) == set(counts)
