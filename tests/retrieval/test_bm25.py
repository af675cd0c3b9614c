"""BM25: the formula, the packed form, with numpy and without."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jianmu.retrieval import bm25
from jianmu.retrieval.bm25 import Posting, QueryTerm, idf, pack, remove, score_postings, term_score, unpack
from jianmu.retrieval.words import WordIndex

POSTINGS = st.builds(
    Posting,
    st.integers(0, 2**32 - 1),
    st.integers(0, 15),
    st.integers(0, 15),
    st.integers(0, 255),
    st.integers(0, 4095),
    st.integers(0, 15),
)


@given(st.lists(POSTINGS))
def test_postings_come_back_as_they_were_packed(postings: list[Posting]) -> None:
    assert unpack(pack(postings)) == postings


@given(st.lists(POSTINGS, unique_by=lambda one: one.slot, min_size=1), st.data())
def test_removing_a_slot_leaves_the_others(postings: list[Posting], data: st.DataObject) -> None:
    gone = data.draw(st.sampled_from(postings))
    assert unpack(remove(pack(postings), gone.slot)) == [one for one in postings if one != gone]


def test_any_match_beats_no_match_in_the_smallest_store() -> None:
    assert math.isclose(idf(1, 1), 0.2877, abs_tol=1e-4)
    assert math.isclose(idf(2, 1), 0.6931, abs_tol=1e-4)
    assert all(idf(n, m) > 0 for n in range(1, 50) for m in range(1, n + 1))


@given(
    st.dictionaries(
        st.sampled_from("abc"),
        st.lists(
            POSTINGS.map(lambda one: one._replace(slot=one.slot % 40, own=max(1, one.own))),
            unique_by=lambda one: one.slot,
        ),
    )
)
def test_scores_are_the_same_without_numpy(found: dict[str, list[Posting]]) -> None:
    terms = [QueryTerm(name, 1.0 + at, 1 << at) for at, name in enumerate("abc")]
    blocks = {name: [pack(some)] for name, some in found.items()}
    packed = [(term, b"".join(blocks[term.text])) for term in terms if blocks.get(term.text)]
    with_numpy = score_postings(blocks, terms, average=9.0, slots=40)
    plain = bm25._score_plainly(packed, 9.0)
    slots = range(41)  # the last is not there
    assert with_numpy.own(slots) == pytest.approx(plain.own(slots), rel=1e-4, abs=1e-5)
    assert with_numpy.context(slots) == pytest.approx(plain.context(slots), rel=1e-4, abs=1e-5)
    for slot in slots:
        expected = sum(
            term_score(term, one.own, one.length, one.forms, 9.0)
            for term in terms
            for one in found.get(term.text, [])
            if one.slot == slot
        )
        assert math.isclose(plain.own([slot])[0], expected, rel_tol=1e-6, abs_tol=1e-9)
    assert set(with_numpy.top(100)) == set(plain.top(100))


@pytest.mark.parametrize(
    ("texts", "query", "first"),
    [
        (["It is quite windy in London", "Hello there good man"], "windy London", 0),
        (["windy"], "windy", 0),
        (["tea one", "tea two rare", "tea three"], "tea rare", 1),
        (["new shoes", "daily news"], "news", 1),
        (["organization chart", "pipe organ"], "organ", 1),
        (["今日は成語しりとりをした", "the cat sat"], "しりとり", 0),
    ],
)
def test_the_word_index_finds_the_right_text_first(texts: list[str], query: str, first: int) -> None:
    index: WordIndex[int] = WordIndex()
    for number, text in enumerate(texts):
        index.add(number, text)
    found = index.search(query)
    assert found[0][0] == first
    assert all(score > 0 for _, score in found)


def test_a_removed_or_replaced_text_is_not_found() -> None:
    index: WordIndex[str] = WordIndex()
    index.add("a", "green tea")
    index.add("b", "black tea")
    index.add("a", "blue cheese")
    assert [id for id, _ in index.search("tea")] == ["b"]
    assert index.remove("b")
    assert not index.remove("b")
    assert index.search("tea") == []
    assert len(index) == 1
