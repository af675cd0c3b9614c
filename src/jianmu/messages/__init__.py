"""Messages of a conversation, and their form on the wire of each provider.

The converters take and return plain data and import no SDK: what they build can be passed to the clients of
`openai`, `anthropic` and `google-genai`; what they read is a response object of such an SDK or its JSON.
"""

from jianmu.messages.anthropic import from_anthropic_message, to_anthropic_messages
from jianmu.messages.gemini import from_gemini_content, to_gemini_contents
from jianmu.messages.message import ImagePart, Message, Part, Role, TextPart, ToolCall
from jianmu.messages.openai import from_openai_message, to_openai_messages

__all__ = [
    "ImagePart",
    "Message",
    "Part",
    "Role",
    "TextPart",
    "ToolCall",
    "from_anthropic_message",
    "from_gemini_content",
    "from_openai_message",
    "to_anthropic_messages",
    "to_gemini_contents",
    "to_openai_messages",
]
