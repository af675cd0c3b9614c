"""The typed state of a run."""

from jianmu.state.manager import StateManager
from jianmu.state.schema import Ephemeral

__all__ = ["Ephemeral", "StateManager"]
