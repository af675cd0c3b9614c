"""Random conversations, and what every prompt must hold to."""

from collections.abc import Sequence

from hypothesis import strategies as st

from jianmu.messages import ImagePart, Message, Part, TextPart, ToolCall

TEXTS = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            "",
            " ",
            "hello",
            "我喜欢在早上喝咖啡。" * 3,
            "👩‍💻🎉👍🏽",
            "<|endoftext|>",
            "a\ud800b",
            "def f(x):\n    return x",
            "word " * 60,
        ]
    ),
)
IMAGES = st.builds(
    ImagePart,
    url=st.sampled_from(["https://example.org/a.png", "data:image/png;base64,iVBORw0KGgo="]),
    width=st.none() | st.integers(1, 4000),
    height=st.none() | st.integers(1, 4000),
)
CONTENTS: st.SearchStrategy[str | tuple[Part, ...]] = st.one_of(
    TEXTS, st.lists(st.builds(TextPart, text=TEXTS) | IMAGES, max_size=3).map(tuple)
)
ARGUMENTS = st.one_of(
    st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=10), max_size=3),
    st.sampled_from(["{}", '{"a": 1}', "not json", "", '{"a": NaN}']),
)


@st.composite
def turns(draw: st.DrawFn, number: int | str) -> list[Message]:
    """One turn: the user, then calls (some parallel) with their results, and maybe an answer.

    Calls are named after `number`, so that turns of one number have the same ids.
    """
    made = [Message(role="user", content=draw(CONTENTS), name=draw(st.none() | st.just("Ann")))]
    for step in range(draw(st.integers(0, 3))):
        ids = [f"c{number}.{step}.{i}" for i in range(draw(st.integers(1, 3)))]
        calls = tuple(ToolCall(id=i, name="look_up", arguments=draw(ARGUMENTS)) for i in ids)
        made.append(Message(role="assistant", content=draw(TEXTS), tool_calls=calls))
        for call_id in draw(st.permutations(ids)):
            content = draw(CONTENTS)
            made.append(
                Message(role="tool", content=content, tool_call_id=call_id, is_error=draw(st.booleans()))
            )
    if draw(st.booleans()):
        made.append(Message(role="assistant", content=draw(TEXTS)))
    if draw(st.integers(0, 9)) == 0:
        made.append(Message(role="system", content=draw(TEXTS)))
    return made


@st.composite
def histories(draw: st.DrawFn, max_turns: int = 6, damaged: bool = False) -> list[Message]:
    """A conversation; a damaged one lost, doubled or displaced some of its messages."""
    made = [Message(role="system", content="You are kind.")] if draw(st.booleans()) else []
    same_ids = damaged and draw(st.booleans())
    for number in range(draw(st.integers(0, max_turns))):
        made += draw(turns("same" if same_ids else number))
    for _ in range(draw(st.integers(0, 3)) if damaged and made else 0):
        at = draw(st.integers(0, len(made) - 1))
        match draw(st.sampled_from(["lose", "double", "displace", "truncate"])):
            case "lose":
                del made[at]
            case "double":
                made.insert(draw(st.integers(0, len(made))), made[at])
            case "displace":
                made.insert(draw(st.integers(0, len(made) - 1)), made.pop(at))
            case "truncate":
                del made[at:]
        if not made:
            break
    return made


def newest_user(messages: Sequence[Message]) -> Message | None:
    return next((m for m in reversed(messages) if m.role == "user"), None)


def is_subsequence(part: Sequence[Message], whole: Sequence[Message]) -> bool:
    rest = iter(whole)
    return all(any(item is other for other in rest) for item in part)


def assert_pairs_are_whole(messages: Sequence[Message]) -> None:
    """Each call is answered by the results right after it, and by nothing else."""
    waiting: list[str] = []
    for message in messages:
        if message.role == "tool":
            assert message.tool_call_id in waiting
            waiting.remove(message.tool_call_id)
        else:
            assert not waiting
            waiting = [call.id for call in message.tool_calls]
    assert not waiting
