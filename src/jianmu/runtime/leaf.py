"""Leaves: work that a tree waits for."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from py_trees.behaviour import Behaviour
from py_trees.common import Status

from jianmu.errors import ConfigError, RunError
from jianmu.runtime.activity import Activity, LeafReturn
from jianmu.runtime.ctx import ConditionContext, LeafContext

if TYPE_CHECKING:
    from jianmu.runtime.session import Session

__all__ = ["Ask", "AsyncNode", "ConditionNode", "FunctionNode", "LeafFactory", "node"]


class AsyncNode(Behaviour):
    """A leaf whose work is a coroutine; subclass it and write `run`.

    The coroutine starts after the tick that reached the leaf is saved, and is cancelled when the leaf is
    interrupted. After a crash it starts again from its first line: put effects into `ctx.once`, and results
    into the state. Attributes set in `__init__` are configuration: they are not saved.

    Args:
        name: The node's name; the class's name by default.

    Attributes:
        activation: How often the leaf was entered in the life of the thread.
        error: The exception that made it fail last, or None.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name if name is not None else type(self).__name__)
        self.activation = 0
        self.error: BaseException | None = None
        self._host: Session | None = None
        self._activity: Activity | None = None

    @property
    def kind(self) -> str:
        """What the tree's fingerprint calls this leaf."""
        return type(self).__qualname__

    async def run(self, ctx: LeafContext) -> LeafReturn:
        """Do the work.

        Args:
            ctx: The leaf's view of the run.

        Returns:
            None or True for SUCCESS, False for FAILURE, a Status, or a dict of state updates (SUCCESS). An
            exception is FAILURE; it is kept in `error`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no run()")

    def bind(self, host: Session | None) -> None:
        """Called by the runner as a run begins and ends."""
        self._host = host
        self._activity = None

    def initialise(self) -> None:
        """Begin an activation."""
        self.activation += 1
        self.error = None
        self._activity = self._session.begin(self)

    def resume(self) -> None:
        """Begin the activation that the checkpoint left RUNNING once more, under the same number."""
        self._activity = self._session.begin(self)

    def update(self) -> Status:
        """Take the result if there is one."""
        if self._activity is None:
            self.resume()
        assert self._activity is not None
        return self._activity.poll()

    def terminate(self, new_status: Status) -> None:
        """Cancel what is under way."""
        activity, self._activity = self._activity, None
        if activity is not None and new_status is Status.INVALID:
            activity.cancel()

    @property
    def _session(self) -> Session:
        if self._host is None:
            raise RunError(f"leaf {self.name!r} was ticked outside a run; give its tree to a ReactiveRunner")
        return self._host


class FunctionNode(AsyncNode):
    """A leaf made by `node` from an ``async def``."""

    def __init__(
        self,
        function: Callable[..., Awaitable[LeafReturn]],
        arguments: tuple[tuple[Any, ...], dict[str, Any]],
        name: str,
    ) -> None:
        super().__init__(name)
        self._function = function
        self._arguments = arguments

    @property
    def kind(self) -> str:
        """The function's qualified name."""
        return _qualified_name(self._function)

    async def run(self, ctx: LeafContext) -> LeafReturn:
        """Call the function."""
        args, kwargs = self._arguments
        return await self._function(ctx, *args, **kwargs)


class ConditionNode(AsyncNode):
    """A leaf made by `node` from a plain ``def``: it is evaluated inside the tick, so it must be quick."""

    def __init__(
        self,
        function: Callable[..., LeafReturn],
        arguments: tuple[tuple[Any, ...], dict[str, Any]],
        name: str,
    ) -> None:
        super().__init__(name)
        self._function = function
        self._arguments = arguments

    @property
    def kind(self) -> str:
        """The function's qualified name."""
        return _qualified_name(self._function)

    def initialise(self) -> None:
        """Count the activation."""
        self.activation += 1
        self.error = None

    def resume(self) -> None:
        """Do nothing: the next tick evaluates again."""

    def update(self) -> Status:
        """Evaluate; RUNNING means: not yet, ask again at the next tick."""
        activity = Activity(self._session, self, ConditionContext)
        args, kwargs = self._arguments
        try:
            result = self._function(activity.ctx, *args, **kwargs)
            _refuse_coroutine(result, self.name)
        except Exception as error:  # noqa: BLE001 - a leaf may raise anything
            return activity.fail(error)
        return Status.RUNNING if result is Status.RUNNING else activity.conclude(result)


def _refuse_coroutine(result: object, name: str) -> None:
    if inspect.iscoroutine(result):
        result.close()
        raise RunError(
            f"leaf {name!r} is a plain def and returned a coroutine, for which a condition cannot wait; make "
            "it `async def` and await there"
        )


def _qualified_name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


LeafT = TypeVar("LeafT", bound=AsyncNode)


class LeafFactory(Generic[LeafT]):
    """Makes leaves of one function: ``greet()``, ``greet(name="hello")``, ``greet("arg", name="hello")``.

    Args:
        function: ``async def f(ctx, ...)``, or ``def f(ctx, ...)`` for a condition.
        make: The leaf's class.
        name: The default name of its leaves.
    """

    def __init__(self, function: Callable[..., Any], make: type[LeafT], name: str) -> None:
        self._function = function
        self._make = make
        self._name = name
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, name: str | None = None, **kwargs: Any) -> LeafT:
        """Return a new leaf; further arguments go to the function behind `ctx`."""
        make = cast("Callable[..., LeafT]", self._make)
        return make(self._function, (args, kwargs), name if name is not None else self._name)


@overload
def node(function: Callable[..., Any], /) -> LeafFactory[AsyncNode]: ...
@overload
def node(*, name: str | None = None) -> Callable[[Callable[..., Any]], LeafFactory[AsyncNode]]: ...
def node(
    function: Callable[..., Any] | None = None, /, *, name: str | None = None
) -> LeafFactory[AsyncNode] | Callable[[Callable[..., Any]], LeafFactory[AsyncNode]]:
    """Turn a function of `ctx` into a factory of leaves.

    An ``async def`` is work that the tree waits for. A plain ``def`` is a condition, evaluated inside the
    tick: quick and without effects.

    Args:
        function: The function.
        name: The default name of its leaves; the function's name by default.

    Returns:
        A factory: call it once for each place in the tree.

    Raises:
        ConfigError: It stands on something else than a function.
    """
    if function is None:
        return lambda function: _factory(function, name)
    return _factory(function, name)


def _factory(function: Callable[..., Any], name: str | None) -> LeafFactory[AsyncNode]:
    given: object = function
    if not callable(given) or inspect.isclass(given):
        raise ConfigError(
            f"@node makes leaves of a function `async def f(ctx)`, not of {given!r}; a name is given as "
            "@node(name='...'), a class of leaves is made by subclassing AsyncNode"
        )
    kind: type[AsyncNode] = FunctionNode if inspect.iscoroutinefunction(function) else ConditionNode
    default = str(getattr(function, "__name__", type(function).__name__))
    return LeafFactory(function, kind, name if name is not None else default)


class Ask(AsyncNode):
    """A leaf that asks and waits for the answer.

    Args:
        payload: What to ask (anything the state could hold), or a function of the state that returns it.
        into: The state field that gets the answer. Without it the answer decides: False is FAILURE,
            anything else SUCCESS.
        key: What tells this question from others of the leaf; part of its id.
        name: The node's name.
    """

    def __init__(
        self, payload: Any, into: str | None = None, *, key: str = "ask", name: str | None = None
    ) -> None:
        super().__init__(name)
        self._payload = payload
        self._into = into
        self._key = key

    async def run(self, ctx: LeafContext) -> LeafReturn:
        """Ask."""
        payload = self._payload(ctx.state) if callable(self._payload) else self._payload
        answer = await ctx.ask(payload, key=self._key)
        if self._into is not None:
            return {self._into: answer}
        return answer is not False
