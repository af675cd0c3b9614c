"""The arguments of one call of `run`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from jianmu.errors import ConfigError
from jianmu.runtime.result import RestorePolicy, SuspensionMode

__all__ = ["InputData", "RunOptions"]

InputData = Mapping[str, Any] | BaseModel | None


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What `ReactiveRunner.run` was called with; its docstring says what each means.

    Raises:
        ConfigError: A value that cannot be used, or some that do not fit together.
    """

    input_data: InputData
    thread_id: str
    interval: int
    policy: RestorePolicy
    mode: SuspensionMode
    answers: Mapping[str, Any]
    max_ticks: int | None
    from_step: int | None
    fork_to: str | None
    truncate: bool

    def __post_init__(self) -> None:
        if not self.thread_id or not isinstance(self.thread_id, str):
            raise ConfigError("thread_id must be a non-empty string")
        self._check_data(self.input_data, self.answers)
        if type(self.interval) is not int or self.interval < 1:
            raise ConfigError(
                f"checkpoint_interval must be a whole number of ticks, 1 or more; not {self.interval!r}"
            )
        if self.max_ticks is not None and (type(self.max_ticks) is not int or self.max_ticks < 1):
            raise ConfigError(f"max_ticks must be 1 or more, or None; not {self.max_ticks!r}")
        for name, value, kind in (
            ("restore_policy", self.policy, RestorePolicy),
            ("suspension_mode", self.mode, SuspensionMode),
        ):
            if not isinstance(value, kind):
                allowed = ", ".join(f"{kind.__name__}.{each.name}" for each in kind)
                raise ConfigError(f"{name} must be one of {allowed}; not {value!r}")
        self._check_travel()

    def _check_data(self, input_data: object, answers: object) -> None:
        if input_data is not None and not isinstance(input_data, Mapping | BaseModel):
            raise ConfigError(
                f"input_data is of the kind {type(input_data).__name__}; pass a dict of state fields, an "
                "instance of the schema, or None"
            )
        if not isinstance(answers, Mapping):
            raise ConfigError(
                f"answers is of the kind {type(answers).__name__}; pass a dict such as {{question.id: True}}"
            )

    def _check_travel(self) -> None:
        if self.fork_to is not None and self.truncate:
            raise ConfigError(
                "fork_to= leaves the thread as it is and truncate=True cuts it; pass one of them"
            )
        if self.fork_to is not None and self.fork_to == self.thread_id:
            raise ConfigError("fork_to= is the thread itself; pass another id, or truncate=True")
        if self.from_step is not None and self.fork_to is None and not self.truncate:
            raise ConfigError(
                "from_step= alone would rewrite what was saved after it; pass fork_to='a new id' to keep it, "
                "or truncate=True to drop it"
            )
        if self.truncate and self.from_step is None:
            raise ConfigError("truncate=True needs from_step=, the last step to keep")
        if (self.fork_to is not None or self.truncate) and self.policy is RestorePolicy.NEVER:
            raise ConfigError("from_step= and fork_to= go on from a checkpoint, which NEVER ignores")

    @property
    def input_fields(self) -> dict[str, Any]:
        """The input as an update: of a model only the fields that were set."""
        if isinstance(self.input_data, BaseModel):
            return {name: getattr(self.input_data, name) for name in self.input_data.model_fields_set}
        return dict(self.input_data or {})
