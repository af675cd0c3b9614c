"""Where the parts of a prompt come from."""

from jianmu.memory.context.providers.base import ContextProvider, Entries, Provided
from jianmu.memory.context.providers.function import FunctionProvider
from jianmu.memory.context.providers.history import StateHistoryProvider
from jianmu.memory.context.providers.recall import KnowledgeProvider, MemoryProvider
from jianmu.memory.context.providers.skill import SkillProvider
from jianmu.memory.context.providers.system import SystemPromptProvider
from jianmu.memory.context.providers.tools import ToolsDescProvider

__all__ = [
    "ContextProvider",
    "Entries",
    "FunctionProvider",
    "KnowledgeProvider",
    "MemoryProvider",
    "Provided",
    "SkillProvider",
    "StateHistoryProvider",
    "SystemPromptProvider",
    "ToolsDescProvider",
]
