"""What a key of `once` stands for, so that two effects under one key are not taken for one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from jianmu.errors import RunError

__all__ = ["Effect"]

_PLAIN = (type(None), bool, int, float, str, bytes)


class Effect:
    """A function and its arguments, as far as two calls can be told apart.

    A lambda on one line is one function however often the line runs, and of the arguments those are compared
    that are plain values: anything else may have no equality worth the name.

    Args:
        fn: The function.
        args: Its arguments.
    """

    def __init__(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
        called: Any = fn
        while isinstance(called, functools.partial):
            called, args = called.func, (*called.args, *args)
        self._name = str(getattr(called, "__qualname__", type(called).__qualname__))
        self._code = getattr(called, "__code__", self._name)
        self._args = args

    def check_same(self, other: Effect, key: str, leaf: str) -> None:
        """Compare with another call under the same key.

        Raises:
            RunError: It is of another function, or its arguments are others.
        """
        if self._code != other._code:
            what = f"the answer of {self._name}, and {other._name} was not called"
        elif self._differs_in_arguments(other):
            what = f"the answer of {self._name} to other arguments"
        else:
            return
        raise RunError(
            f"leaf {leaf!r}: once({key!r}) already has {what}; one key is one effect: give each its own key, "
            f"such as f'{key}-{{number}}' in a loop"
        )

    def _differs_in_arguments(self, other: Effect) -> bool:
        if len(self._args) != len(other._args):
            return True
        pairs = zip(self._args, other._args, strict=True)
        return any(
            isinstance(mine, _PLAIN) and isinstance(theirs, _PLAIN) and mine is not theirs and mine != theirs
            for mine, theirs in pairs
        )
