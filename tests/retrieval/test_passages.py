"""Long texts are cut into passages that are together the text."""

from hypothesis import given
from hypothesis import strategies as st

from jianmu.retrieval.passages import PASSAGE_WORDS, split_passages, word_count


def test_a_short_text_stays_whole() -> None:
    assert split_passages("I like tea. You like cake.") == ["I like tea. You like cake."]


def test_a_long_answer_is_cut_at_sentence_ends() -> None:
    text = " ".join(f"Sentence number {n} says something about tea." for n in range(100))
    passages = split_passages(text)
    assert len(passages) > 5
    assert "".join(passages) == text
    assert all(word_count(passage) <= PASSAGE_WORDS * 1.5 for passage in passages)
    assert all(passage.strip().endswith(".") for passage in passages)


@given(st.text(alphabet=st.sampled_from("ab汉字。.\n ภ!é"), max_size=3_000))
def test_no_character_of_any_text_is_lost_but_white_space(text: str) -> None:
    passages = split_passages(text)
    assert "".join("".join(passages).split()) == "".join(text.split())
    assert all(word_count(passage) <= PASSAGE_WORDS * 1.5 for passage in passages)
