"""Functions from messages to messages, applied to the history before it is made to fit."""

from jianmu.memory.context.filters.base import Filter, RequestFilter
from jianmu.memory.context.filters.redact import PATTERNS, Redact
from jianmu.memory.context.filters.select import by_role, dedupe, drop_empty, window
from jianmu.memory.context.filters.summarise import Summarise
from jianmu.memory.context.filters.tool_output import StubToolOutput

__all__ = [
    "PATTERNS",
    "Filter",
    "Redact",
    "RequestFilter",
    "StubToolOutput",
    "Summarise",
    "by_role",
    "dedupe",
    "drop_empty",
    "window",
]
