"""Settings of a project: which checkpoint back end, and how often."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["RuntimeCheckpointConfig"]


class RuntimeCheckpointConfig(BaseModel):
    """Whether and how a runner checkpoints when it is given no checkpointer.

    Attributes:
        enabled: Make a checkpointer when none is passed to `run`.
        backend: Its kind.
        interval: Save every so many ticks.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = False
    backend: str = "file"
    interval: int = 1
