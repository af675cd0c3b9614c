"""NullCheckpointer keeps nothing, and says so."""

from jianmu.memory import CheckpointerProtocol, NullCheckpointer
from jianmu.memory.checkpoint.base import HistoryCapable, JournalCapable, LeaseCapable


def test_nothing_is_kept() -> None:
    store = NullCheckpointer()
    store.save_checkpoint("t", 1, {"n": 1}, {"0": "RUNNING"}, {"m": 1})
    assert store.get_checkpoint("t") is None


def test_it_offers_the_two_methods_and_nothing_more() -> None:
    store = NullCheckpointer()
    assert isinstance(store, CheckpointerProtocol)
    for capability in (HistoryCapable, JournalCapable, LeaseCapable):
        assert not isinstance(store, capability)
