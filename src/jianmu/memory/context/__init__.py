"""State, memory and tools become a prompt that fits."""

from jianmu.memory.context.budget import TokenBudget
from jianmu.memory.context.builder import BuiltContext, ContextBuilder, Provider
from jianmu.memory.context.counting import (
    EstimateCounter,
    ExactCounter,
    MessageCounter,
    Overhead,
    TokenCounter,
    anthropic_image_tokens,
    default_counter,
    openai_image_tokens,
)
from jianmu.memory.context.filters import (
    PATTERNS,
    Filter,
    Redact,
    RequestFilter,
    StubToolOutput,
    Summarise,
    by_role,
    dedupe,
    drop_empty,
    window,
)
from jianmu.memory.context.providers import (
    ContextProvider,
    Entries,
    FunctionProvider,
    KnowledgeProvider,
    MemoryProvider,
    Provided,
    SkillProvider,
    StateHistoryProvider,
    SystemPromptProvider,
    ToolsDescProvider,
)
from jianmu.memory.context.quote import quote
from jianmu.memory.context.report import Change, ContextReport, SectionReport
from jianmu.memory.context.request import ContextRequest

__all__ = [
    "PATTERNS",
    "BuiltContext",
    "Change",
    "ContextBuilder",
    "ContextProvider",
    "ContextReport",
    "ContextRequest",
    "Entries",
    "EstimateCounter",
    "ExactCounter",
    "Filter",
    "FunctionProvider",
    "KnowledgeProvider",
    "MemoryProvider",
    "MessageCounter",
    "Overhead",
    "Provided",
    "Provider",
    "Redact",
    "RequestFilter",
    "SectionReport",
    "SkillProvider",
    "StateHistoryProvider",
    "StubToolOutput",
    "Summarise",
    "SystemPromptProvider",
    "TokenBudget",
    "TokenCounter",
    "ToolsDescProvider",
    "anthropic_image_tokens",
    "by_role",
    "dedupe",
    "default_counter",
    "drop_empty",
    "openai_image_tokens",
    "quote",
    "window",
]
