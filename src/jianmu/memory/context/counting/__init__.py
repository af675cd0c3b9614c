"""Token counters: exact where a vocabulary is at hand, estimated by script where none is."""

from jianmu.memory.context.counting.base import MessageCounter, Overhead, TokenCounter
from jianmu.memory.context.counting.estimate import EstimateCounter
from jianmu.memory.context.counting.exact import ExactCounter, default_counter
from jianmu.memory.context.counting.images import anthropic_image_tokens, openai_image_tokens

__all__ = [
    "EstimateCounter",
    "ExactCounter",
    "MessageCounter",
    "Overhead",
    "TokenCounter",
    "anthropic_image_tokens",
    "default_counter",
    "openai_image_tokens",
]
