"""Every error that jianmu raises on purpose, in one tree.

Catch `JianmuError` to catch them all::

    JianmuError
    ├── ConfigError (ValueError)            a setting that cannot be used
    ├── MissingExtraError (ImportError)     an optional package is not installed
    ├── CapabilityError                     a back end was asked for what it does not offer
    ├── CodecError (ValueError)
    │   ├── EncodeError                     a value that would not come back the same
    │   └── DecodeError                     stored data that does not describe a value
    ├── StateError
    │   ├── StateValidationError (ValueError)   an update or a stored state that the schema refuses
    │   └── StateVersionError               a stored version that no migration leads from
    ├── StorageError                        the disk or the database refused
    ├── CheckpointError
    │   ├── CheckpointArgumentError (ValueError)  a thread id, step or limit that can mean nothing
    │   ├── CheckpointCorruptError          an acknowledged record that fails its checksum
    │   ├── CheckpointFormatError           a record or file of a newer format
    │   ├── CheckpointNotFoundError         no such thread or step
    │   ├── CheckpointExistsError           the step or thread is already there
    │   ├── CipherError                     a wrong key, or a record that was altered or never sealed
    │   ├── ThreadBusyError                 another runner holds the thread
    │   └── LeaseLostError                  this runner no longer holds the thread
    ├── RunError
    │   ├── UnsupportedNodeError            a node whose position cannot be saved
    │   ├── NodeStateError                  a node grew attributes that are not saved
    │   ├── TreeChangedError                the tree is not the one that was saved
    │   ├── StalledError                    RUNNING, and nothing left that could wake it
    │   ├── LivelockError                   a tree that keeps ticking itself
    │   ├── UnknownQuestionError            an answer to a question that is not open
    │   ├── StoredLeafError                 why a leaf failed in an earlier call, as it was saved
    │   └── ApprovalPendingError            a new turn while the one before waits for a person
    ├── LongTermMemoryError
    │   ├── MemoryNotFoundError (LookupError)   no such memory
    │   ├── MemoryInputError (ValueError)       a text, key, namespace, filter or metadata that cannot be used
    │   ├── MemoryCorruptError              a stored memory, or its index, that fails its checksum
    │   ├── EmbedderError                   an embedder failed
    │   └── EmbedderMismatchError           an index made with another embedder
    ├── ContextError
    │   ├── ProviderError                   a provider that may not fail did
    │   └── BudgetError (ValueError)        a budget too small for what may not be dropped
    ├── ToolError
    │   ├── ToolArgumentError (ValueError)  arguments that the schema refuses
    │   └── ToolTimeoutError (TimeoutError) a tool that took too long
    ├── ChatModelError                      a provider refused, or its answer made no sense
    └── SkillError (ValueError)             a skill folder that cannot be read
"""

from __future__ import annotations

__all__ = [
    "ApprovalPendingError",
    "BudgetError",
    "CapabilityError",
    "ChatModelError",
    "CheckpointArgumentError",
    "CheckpointCorruptError",
    "CheckpointError",
    "CheckpointExistsError",
    "CheckpointFormatError",
    "CheckpointNotFoundError",
    "CipherError",
    "CodecError",
    "ConfigError",
    "ContextError",
    "DecodeError",
    "EmbedderError",
    "EmbedderMismatchError",
    "EncodeError",
    "JianmuError",
    "LeaseLostError",
    "LivelockError",
    "LongTermMemoryError",
    "MemoryCorruptError",
    "MemoryInputError",
    "MemoryNotFoundError",
    "MissingExtraError",
    "NodeStateError",
    "ProviderError",
    "RunError",
    "SkillError",
    "StalledError",
    "StateError",
    "StateValidationError",
    "StateVersionError",
    "StorageError",
    "StoredLeafError",
    "ThreadBusyError",
    "ToolArgumentError",
    "ToolError",
    "ToolTimeoutError",
    "TreeChangedError",
    "UnknownQuestionError",
    "UnsupportedNodeError",
]


class JianmuError(Exception):
    """The root of the tree."""


class ConfigError(JianmuError, ValueError):
    """A setting that cannot be used; the message names the setting and what it may be."""


class MissingExtraError(JianmuError, ImportError):
    """An optional package is not installed; the message says which extra of jianmu brings it.

    Args:
        feature: What was asked for, as the user knows it.
        extra: The extra of jianmu that brings it.
    """

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs an optional package: install jianmu with the extra [{extra}]"
            f" (in its checkout: pip install '.[{extra}]')"
        )
        self.extra = extra


class CapabilityError(JianmuError):
    """A back end was asked for what it does not offer.

    Args:
        backend: The back end's name.
        capability: What was asked for.
        remedy: What to use instead.
    """

    def __init__(self, backend: str, capability: str, remedy: str = "") -> None:
        super().__init__(f"{backend} does not offer {capability}" + (f"; {remedy}" if remedy else ""))
        self.backend = backend
        self.capability = capability


class CodecError(JianmuError, ValueError):
    """A value and its stored form do not correspond.

    Args:
        message: What is wrong and what to do.
        path: Where, from the field name inwards, e.g. ``("profile", "token")``.
    """

    def __init__(self, message: str, path: tuple[str | int, ...] = ()) -> None:
        where = ".".join(str(part) for part in path)
        super().__init__(f"{where}: {message}" if where else message)
        self.reason = message
        self.path = path


class EncodeError(CodecError):
    """A value that would not come back equal and of the same type."""


class DecodeError(CodecError):
    """Stored data that does not describe a value of the schema."""


class StateError(JianmuError):
    """The typed state refused."""


class StateValidationError(StateError, ValueError):
    """An update or a stored state that the schema refuses; the message names each field."""


class StateVersionError(StateError):
    """A stored schema version that no migration leads from, or a newer one."""


class StorageError(JianmuError):
    """The disk or the database refused; the cause is chained."""


class CheckpointError(JianmuError):
    """A checkpoint could not be saved or read."""


class CheckpointArgumentError(CheckpointError, ValueError):
    """A thread id, step or limit that can mean nothing: an empty id, a negative step."""


class CheckpointCorruptError(CheckpointError):
    """An acknowledged record that fails its checksum.

    Args:
        message: What was found.
        thread_id: The thread.
        step: The damaged step, or None if even that cannot be read.
        previous_step: The newest whole step before it, or None.
    """

    def __init__(
        self, message: str, *, thread_id: str, step: int | None = None, previous_step: int | None = None
    ) -> None:
        super().__init__(message)
        self.thread_id = thread_id
        self.step = step
        self.previous_step = previous_step


class CheckpointFormatError(CheckpointError):
    """A record or file of a newer format than this version reads."""


class CheckpointNotFoundError(CheckpointError):
    """No such thread or step."""


class CheckpointExistsError(CheckpointError):
    """The step or thread is already there and would be rewritten."""


class CipherError(CheckpointError):
    """A wrong key, an altered record, or a plain record where a sealed one belongs."""


class ThreadBusyError(CheckpointError):
    """Another runner holds the thread."""


class LeaseLostError(CheckpointError):
    """This runner no longer holds the thread; nothing was written."""


class RunError(JianmuError):
    """A run could not start, go on or end as asked."""


class UnsupportedNodeError(RunError):
    """A node whose position cannot be saved; the message names it and the remedy."""


class NodeStateError(RunError):
    """A node grew attributes that are not saved; give it dump()/load() or keep the data in the state."""


class TreeChangedError(RunError):
    """The tree is not the one that was saved; the message names the first difference."""


class StalledError(RunError):
    """The root is RUNNING and nothing is left that could wake it; the message names the leaves."""


class LivelockError(RunError):
    """The tree caused its own next tick too many times in a row."""


class UnknownQuestionError(RunError):
    """An answer to a question that is not open."""


class StoredLeafError(RunError):
    """Why a leaf failed in an earlier call: the type and message of its exception, as they were saved.

    Args:
        kind: The name of the exception's class.
        message: Its message, perhaps cut short.
        path: The leaf's index path.
    """

    def __init__(self, kind: str, message: str, path: str) -> None:
        super().__init__(kind, message, path)
        self.kind = kind
        self.message = message
        self.path = path

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" if self.message else self.kind


class ApprovalPendingError(RunError):
    """A new turn while the one before waits for a person's decision; the message names the questions."""


class LongTermMemoryError(JianmuError):
    """A memory could not be stored or read."""


class MemoryNotFoundError(LongTermMemoryError, LookupError):
    """No memory with this id in this namespace."""


class MemoryInputError(LongTermMemoryError, ValueError):
    """A text, key, namespace, filter or metadata that cannot be used; nothing was stored."""


class MemoryCorruptError(LongTermMemoryError):
    """A stored memory, or the index over the memories, that fails its checksum.

    The message names the memory and what to do: `delete` it or restore the database; for an index, `reindex`.
    """


class EmbedderError(LongTermMemoryError):
    """An embedder failed; nothing was stored."""


class EmbedderMismatchError(LongTermMemoryError):
    """An index was made with another embedder; the message names both and `reindex()`."""


class ContextError(JianmuError):
    """A prompt could not be built."""


class ProviderError(ContextError):
    """A provider that may not fail did."""


class BudgetError(ContextError, ValueError):
    """A budget too small for what may never be dropped; the message has the numbers."""


class ToolError(JianmuError):
    """A tool could not be run; its text is for the model to act on."""


class ToolArgumentError(ToolError, ValueError):
    """Arguments that the tool's schema refuses."""


class ToolTimeoutError(ToolError, TimeoutError):
    """A tool that took longer than it may."""


class ChatModelError(JianmuError):
    """A chat model's provider refused, or its answer made no sense.

    Args:
        message: What happened and what to do; never holds a key.
        kind: One word for logs and events, e.g. ``"rate_limit"``, ``"connection"``.
        status: The HTTP status, if there was one.
        retryable: Whether the same request may succeed later.
        retry_after: Seconds that the provider asked to wait.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str = "error",
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after


class SkillError(JianmuError, ValueError):
    """A skill folder that cannot be read."""
