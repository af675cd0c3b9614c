"""The word index on disk against a plain dict, whatever is added, merged and removed."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jianmu.memory.long_term.engine.segments import (
    Segment,
    absorbed,
    pack_rows,
    pack_segments,
    postings_in,
    unpack_row,
    unpack_segments,
    without,
)
from jianmu.memory.long_term.engine.sqlite_tables import SqliteDatabase
from jianmu.memory.long_term.engine.tables import Tables
from jianmu.retrieval.bm25 import Posting, pack, remove, unpack

NAMES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20
)  # no term holds NUL or half a pair
POSTINGS = st.dictionaries(NAMES, st.binary(min_size=8, max_size=64).map(lambda b: b[: len(b) // 8 * 8]))


@given(POSTINGS)
def test_rows_give_back_every_posting_and_nothing_else(postings: dict[str, bytes]) -> None:
    rows = list(pack_rows(postings))
    assert {k: v for _, _, row in rows for k, v in unpack_row(row).items()} == postings
    assert [row[:2] for row in rows] == sorted(row[:2] for row in rows)
    for name in (*postings, "absent", "a"):
        assert b"".join(postings_in(row, name) for _, _, row in rows) == postings.get(name, b"")


def test_a_term_with_many_postings_has_rows_of_its_own() -> None:
    many = pack(Posting(slot, 1, 0, 1, 9, 0) for slot in range(5_000))
    rows = list(pack_rows({"few": many[:8], "many": many, "more": many[:16]}))
    assert [row[:2] for row in rows] == [
        ("few", 0),
        *(("many", at) for at in range(0, 5_000, 1_064)),
        ("more", 0),
    ]
    assert b"".join(postings_in(row, "many") for _, _, row in rows) == many


@given(POSTINGS.filter(bool), st.data())
def test_a_removed_posting_is_gone_and_the_others_stay(
    postings: dict[str, bytes], data: st.DataObject
) -> None:
    row = next(pack_rows(postings))[2]
    held = unpack_row(row)
    terms = data.draw(st.lists(st.sampled_from(sorted(held)), min_size=1, unique=True))
    slot = unpack(held[terms[0]])[0].slot
    expected = {
        term: left for term, some in held.items() if (left := remove(some, slot) if term in terms else some)
    }
    left = without(row, terms, slot)
    assert (left is None) == (not expected)
    if left is not None:
        assert unpack_row(left[1]) == expected
        assert left[0] == min(expected)


@given(st.lists(st.integers(1, 40_000), max_size=400))
def test_a_search_never_looks_into_many_segments(sizes: list[int]) -> None:
    segments: list[Segment] = []
    for start, size in enumerate(sizes):
        at = absorbed(segments, size)
        taken = segments[at:]
        segments[at:] = [
            Segment(taken[0].start if taken else start, size + sum(one.postings for one in taken), 1)
        ]
    assert sum(one.postings for one in segments) == sum(sizes)
    assert len(segments) <= 7 * 8
    assert unpack_segments(pack_segments(segments)) == segments


def test_a_posting_is_rewritten_a_few_times_only() -> None:
    segments: list[Segment] = []
    written = 0
    for start in range(20_000):
        at = absorbed(segments, 15)
        total = 15 + sum(one.postings for one in segments[at:])
        segments[at:] = [Segment(start, total, 1)]
        written += total
    assert written / (20_000 * 15) < 8


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_the_index_in_the_tables_is_the_dict_it_stands_for(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    chance = random.Random(seed)
    database = SqliteDatabase(tmp_path_factory.mktemp("words") / "m.db", timeout=5, cache_bytes=0)
    model: dict[str, dict[int, bytes]] = {}
    slot = 0
    for _ in range(chance.randint(1, 30)):
        batch: dict[str, list[bytes]] = {}
        for _ in range(chance.choice([1, 3, 200])):
            for term in chance.sample(range(60), chance.randint(1, 8)):
                entry = pack([Posting(slot, 1, 0, 1, 5, 0)])
                batch.setdefault(f"t{term}", []).append(entry)
                model.setdefault(f"t{term}", {})[slot] = entry
            slot += 1
        gone = chance.sample(range(slot), min(slot, chance.randint(0, 4)))

        def work(tables: Tables, batch: dict[str, list[bytes]] = batch, gone: list[int] = gone) -> None:
            space = tables.claim("")
            tables.add_postings(space, batch)
            terms = {at: [term for term, held in model.items() if at in held] for at in gone}
            tables.remove_postings(space, terms)
            tables.save_space(space)

        database.write(work)
        for at in gone:
            for held in model.values():
                held.pop(at, None)
    found = database.read(
        lambda tables: tables.postings(tables.spaces("", deep=False)[0], [f"t{n}" for n in range(60)])
    )
    database.close()
    entries = {term: b"".join(some) for term, some in found.items()}
    assert {term: sorted(unpack(some)) for term, some in entries.items()} == {
        term: sorted(unpack(b"".join(held.values()))) for term, held in model.items() if held
    }
