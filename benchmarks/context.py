"""How long a prompt takes to build: `python benchmarks/context.py [messages] [budget]`."""

import random
import statistics
import sys
import time

from jianmu.memory.context import (
    ContextBuilder,
    EstimateCounter,
    ExactCounter,
    Redact,
    StubToolOutput,
    TokenBudget,
    TokenCounter,
)
from jianmu.messages import Message, ToolCall

WORDS = ["the", "agent", "reads", "a", "file", "计划", "明天", "的", "会议", "writes", "tests", "every", "🎉"]


def conversation(count: int) -> list[Message]:
    """Questions, answers and, in every third turn, two parallel calls with their results."""
    rng = random.Random(20261201)

    def text() -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(5, 60)))

    made = [Message(role="system", content="You are a careful assistant.")]
    while len(made) < count:
        made.append(Message(role="user", content=text()))
        if len(made) % 3 == 0:
            ids = [f"call_{len(made)}_{i}" for i in range(2)]
            calls = tuple(ToolCall(id=i, name="read_file", arguments={"path": text()}) for i in ids)
            made.append(Message(role="assistant", tool_calls=calls))
            made += [Message(role="tool", tool_call_id=i, content=text()) for i in ids]
        made.append(Message(role="assistant", content=text()))
    return [*made[:count], Message(role="user", content="What now?")]


def measure(name: str, builder: ContextBuilder, history: list[Message]) -> None:
    began = time.perf_counter()
    builder.build(history)
    first = time.perf_counter() - began
    again, grown = [], []
    for _ in range(30):
        began = time.perf_counter()
        builder.build(history)
        again.append(time.perf_counter() - began)
        history = [
            *history,
            Message(role="assistant", content="Done."),
            Message(role="user", content="And now?"),
        ]
        began = time.perf_counter()
        built = builder.build(history)
        grown.append(time.perf_counter() - began)
    print(
        f"{name:<34}{first * 1e3:>9.0f}{statistics.median(again) * 1e3:>9.1f}{max(again) * 1e3:>9.1f}"
        f"{statistics.median(grown) * 1e3:>9.1f}{max(grown) * 1e3:>9.1f}   {built.report.total:>6} tokens"
    )


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    limit = int(sys.argv[2]) if len(sys.argv) > 2 else 8_000
    history = conversation(count)
    counters: list[TokenCounter] = [ExactCounter(), EstimateCounter()]
    print(f"{count:,} messages, budget {limit:,}; milliseconds")
    print(f"{'':<34}{'first':>9}{'again':>9}{'worst':>9}{'+1 turn':>9}{'worst':>9}")
    for counter in counters:
        budget = TokenBudget(limit, counter=counter)
        measure(counter.name, ContextBuilder.for_react("Be kind.", budget=budget), history)
        filters = (Redact(), StubToolOutput())
        measure(
            "  redact, stub tool output",
            ContextBuilder.for_react("Be kind.", filters=filters, budget=budget),
            history,
        )


if __name__ == "__main__":
    main()
