"""What a leaf sees of its run."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import typing
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from jianmu.codec import Codec
from jianmu.errors import RunError
from jianmu.runtime.effect import Effect
from jianmu.state.reading import refuse_assignment
from jianmu.tools.ambient import current_idempotency_key

if TYPE_CHECKING:
    from jianmu.runtime.leaf import AsyncNode
    from jianmu.runtime.session import Session

__all__ = ["ConditionContext", "LeafContext"]

T = TypeVar("T")

_STATE_REMEDY = "call ctx.update({'{name}': ...}), or return {'{name}': ...} from the leaf"


class LeafContext:
    """One leaf's view of the run, for one activation.

    Attributes:
        path: The leaf's index path.
        name: The leaf's name.
        activation: How often the leaf was entered in the life of the thread, this time included.
        thread_id: The run's thread.
    """

    def __init__(self, session: Session, leaf: AsyncNode, path: str) -> None:
        self._session = session
        self.path = path
        self.name = leaf.name
        self.activation = leaf.activation
        self.thread_id = session.thread_id
        self.updates: list[Mapping[str, Any]] = []
        self._closed = False
        self._asked = 0
        self._locks: dict[str, asyncio.Lock] = {}
        self._effects: dict[str, Effect] = {}

    @property
    def state(self) -> Any:
        """The committed state with this leaf's own buffered updates: a copy, so change it by `update`.

        Assigning to one of its fields raises `StateError`. What is changed inside a field is lost.
        """
        return refuse_assignment(self._session.preview(self.updates), _STATE_REMEDY)

    def update(self, changes: Mapping[str, Any]) -> None:
        """Change the state when the leaf ends.

        SUCCESS and a returned FAILURE commit it with that tick; an exception, an interruption or a crash
        drops it.

        Args:
            changes: Fields and values; fields with a reducer are merged.

        Raises:
            StateValidationError: The schema refuses a value; nothing was buffered.
        """
        self._check_open()
        buffered = [*self.updates, dict(changes)]
        self._session.preview(buffered)
        self.updates = buffered

    async def publish(self, key: str, changes: Mapping[str, Any]) -> None:
        """Change the state at once, for others to see while this leaf still runs.

        It happens once per activation and key, also when the leaf starts again after a crash.

        Args:
            key: Names this publication within the leaf.
            changes: As for `update`.

        Raises:
            StateValidationError: The schema refuses a value.
        """
        self._check_open()
        self._session.publish(self.path, self.activation, key, dict(changes))
        await asyncio.sleep(0)

    @property
    def idempotency_key(self) -> str:
        """The key under which an effect should be known to the outside world.

        Inside a `once` call it is that call's, else the leaf's own. It is the same again when the effect is
        repeated after a crash, and differs for every other effect.
        """
        own = self._session.identity.idempotency_key(self.path, self.activation)
        current = current_idempotency_key.get()
        return current if current is not None and current.startswith(own + "/") else own

    @overload
    async def once(self, key: str, fn: Callable[..., Awaitable[T]], *args: Any, returns: Any = None) -> T: ...
    @overload
    async def once(self, key: str, fn: Callable[..., T], *args: Any, returns: Any = None) -> T: ...
    async def once(self, key: str, fn: Callable[..., Any], *args: Any, returns: Any = None) -> Any:
        """Call `fn(*args)` and keep its answer, so that it is not called again after a crash.

        The answer is saved before this returns. Between effect and save a crash repeats the effect, with the
        same `idempotency_key`. An exception is not kept: the next attempt calls again.

        Args:
            key: Names this effect within the leaf; the same key is the same effect, so that a loop needs one
                for each item.
            fn: A function or coroutine function; a blocking one belongs into ``asyncio.to_thread``.
            args: Its arguments.
            returns: The type of the answer; by default what `fn` is annotated to return, else plain data.

        Returns:
            The answer, decoded from what was saved, now as after a resume.

        Raises:
            EncodeError: The answer cannot be saved.
            RunError: The key has the answer of another function, or of other arguments.
        """
        self._check_open()
        async with self._locks.setdefault(key, asyncio.Lock()):
            codec = _codec(fn, returns)
            journal = self._session.journal
            found, plain = journal.find(self.path, self.activation, f"once:{key}")
            effect = Effect(fn, args)
            if found:
                self._effects.setdefault(key, effect).check_same(effect, key, self.name)
            else:
                with self._session.leaves.effect_under_way():
                    plain = codec.encode(await self._call(key, fn, args))
                    await journal.append(self.path, self.activation, f"once:{key}", plain)
                self._effects[key] = effect
            return codec.decode(plain)

    async def _call(self, key: str, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        own = self._session.identity.idempotency_key(self.path, self.activation)
        token = current_idempotency_key.set(f"{own}/{key}")
        try:
            answer = fn(*args)
            return await answer if inspect.isawaitable(answer) else answer
        finally:
            current_idempotency_key.reset(token)

    async def ask(self, payload: Any, *, key: str | None = None) -> Any:
        """Wait until somebody answers.

        Args:
            payload: What to ask; anything that the state could hold.
            key: Tells this question from others of the leaf; by default their order does.

        Returns:
            The answer; after a restart at once, if it was given before.
        """
        self._check_open()
        if key is None:
            self._asked += 1
            key = f"#{self._asked}"
        return await self._session.questions.ask(self.path, self.activation, key, payload)

    async def build_context(self, **kwargs: Any) -> Any:
        """Return what the runner's ContextBuilder makes of the committed state.

        What the builder wants kept (a summary that was paid for) is written to the state at once.

        Args:
            kwargs: Further arguments of its `build`, e.g. `tools`.

        Raises:
            RunError: The runner was made without `context=`.
        """
        built = await self._session.build_context(kwargs)
        updates = getattr(built, "updates", None)
        if updates:
            digest = hashlib.sha256(
                json.dumps(dict(updates), sort_keys=True, default=str).encode()
            ).hexdigest()
            await self.publish(f"build_context:{digest[:16]}", updates)
        return built

    def emit(self, type: str, payload: Mapping[str, Any]) -> None:
        """Put an event of your own on the run's bus."""
        self._session.emit(type, {"thread_id": self.thread_id, "path": self.path, **payload})

    def close(self) -> None:
        """End the view; what still holds it can change nothing any more."""
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise RunError(f"leaf {self.name!r} has ended; its context can no longer be used")


class ConditionContext(LeafContext):
    """What a plain ``def`` sees: all but what it would have to wait for."""

    def once(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse."""
        self._refuse("once")

    def publish(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse."""
        self._refuse("publish")

    def ask(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse."""
        self._refuse("ask")

    def build_context(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse."""
        self._refuse("build_context")

    def _refuse(self, method: str) -> NoReturn:
        raise RunError(
            f"leaf {self.name!r} is a plain def, which cannot wait: make it `async def` and write "
            f"`await ctx.{method}(...)`"
        )


def _codec(fn: Callable[..., Any], returns: Any) -> Codec:
    if returns is None:
        try:
            returns = typing.get_type_hints(fn).get("return")
        except (NameError, TypeError, AttributeError):  # an annotation that cannot be resolved is no type
            returns = None
    return Codec() if returns is None else Codec(returns)
