"""The event bus: order, isolation, bounds."""

import threading
from datetime import UTC, datetime

import pytest

from jianmu import RuntimeEventBus


def test_events_arrive_in_order_with_type_payload_and_time() -> None:
    bus = RuntimeEventBus(clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    seen: list[object] = []
    bus.subscribe(seen.append)
    for n in range(100):
        bus.emit("count", {"n": n})
    assert bus.drain(5)
    assert [(e.type, e.payload["n"]) for e in seen] == [("count", n) for n in range(100)]  # type: ignore[attr-defined]
    assert seen[0].time == datetime(2026, 1, 1, tzinfo=UTC)  # type: ignore[attr-defined]


def test_a_failing_subscriber_is_counted_and_disturbs_nobody() -> None:
    bus = RuntimeEventBus()
    seen: list[str] = []

    def fail(event: object) -> None:
        raise RuntimeError("no")

    bus.subscribe(fail)
    bus.subscribe(lambda event: seen.append(event.type))
    bus.emit("a")
    bus.emit("b")
    assert bus.drain(5)
    assert seen == ["a", "b"]
    assert bus.failed == 2


def test_a_slow_subscriber_never_blocks_emit_and_its_overflow_is_counted() -> None:
    bus = RuntimeEventBus(max_queue=3)
    go_on = threading.Event()
    seen: list[str] = []
    bus.subscribe(lambda event: (go_on.wait(10), seen.append(event.type)))
    for n in range(10):
        bus.emit(str(n))
    assert bus.dropped == 7
    assert not bus.drain(0.01)
    go_on.set()
    assert bus.drain(5)
    assert seen == ["0", "1", "2"]


def test_unsubscribe_ends_delivery_and_keeps_the_counts() -> None:
    bus = RuntimeEventBus()
    seen: list[str] = []
    unsubscribe = bus.subscribe(lambda event: seen.append(event.type))
    bus.emit("a")
    assert bus.drain(5)
    unsubscribe()
    unsubscribe()
    bus.emit("b")
    assert bus.drain(5)
    assert seen == ["a"]
    assert not bus.wants("b")


def test_a_subscription_to_some_types_gets_only_those() -> None:
    bus = RuntimeEventBus()
    seen: list[str] = []
    bus.subscribe(lambda event: seen.append(event.type), types={"b"})
    assert bus.wants("b")
    assert not bus.wants("a")
    bus.emit("a")
    bus.emit("b")
    assert bus.drain(5)
    assert seen == ["b"]


def test_a_coroutine_function_can_subscribe() -> None:
    bus = RuntimeEventBus()
    seen: list[str] = []

    async def listen(event: object) -> None:
        seen.append("heard")

    bus.subscribe(listen)
    bus.emit("a")
    assert bus.drain(5)
    assert seen == ["heard"]


@pytest.mark.parametrize("rounds", [3])
def test_a_bus_works_again_after_its_thread_went_idle(rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from jianmu.events.subscriber import Subscriber

    monkeypatch.setattr(Subscriber, "_LINGER", 0.0)
    bus = RuntimeEventBus()
    seen: list[str] = []
    bus.subscribe(lambda event: seen.append(event.type))
    for n in range(rounds):
        bus.emit(str(n))
        assert bus.drain(5)
    assert seen == ["0", "1", "2"]
