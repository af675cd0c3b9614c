"""Where `jianmu chat` gets its settings: flags, then the environment, then jianmu.toml."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from jianmu.agents.anthropic_model import AnthropicChatModel
from jianmu.agents.chat_model import ChatModel
from jianmu.agents.echo_model import EchoChatModel
from jianmu.agents.openai_model import OpenAIChatModel
from jianmu.agents.react import MemoryUse
from jianmu.errors import ConfigError

__all__ = ["HOW_TO_SET_A_MODEL", "ChatSettings", "load_settings", "make_model"]

HOW_TO_SET_A_MODEL = """\
No model is set. Choose one of these:

  jianmu chat --model echo                        a built-in rule: stores and searches memory word for word
  OPENAI_API_KEY=...    jianmu chat --model gpt-4.1-mini
  ANTHROPIC_API_KEY=... jianmu chat --model claude-sonnet-4-5
  jianmu chat --model qwen3 --base-url http://127.0.0.1:11434/v1     any OpenAI-compatible server

or keep it in jianmu.toml (never the key itself):

  [chat]
  model = "deepseek-chat"
  base_url = "https://api.deepseek.com/v1"
  api_key_env = "DEEPSEEK_API_KEY"

or in the environment: JIANMU_CHAT_MODEL, JIANMU_CHAT_BASE_URL, JIANMU_CHAT_API_KEY_ENV.
"""

_PREFIX = "JIANMU_CHAT_"


class ChatSettings(BaseModel):
    """The settings of `jianmu chat`; each is a flag, ``JIANMU_CHAT_<NAME>`` and a key of ``[chat]``.

    Attributes:
        model: The model's name; ``"echo"`` is the built-in rule.
        provider: ``"openai"`` or ``"anthropic"``; by default read off the model's name.
        base_url: The server's root.
        api_key_env: The environment variable that holds the key.
        file: The SQLite file of threads and memories.
        thread: The thread to begin with.
        namespace: Whose memories these are, levels parted by ``/``.
        system_prompt: What the model is told first.
        memory: How memory is used: ``"tools"``, ``"auto"`` or ``"both"``.
        max_steps: Completions in one turn at most.
        tools: What the model may call besides its memory, as ``module:attribute``; in the environment parted
            by commas.
        skills: Folders of skills; in the environment parted as ``PATH`` is.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str | None = None
    provider: Literal["openai", "anthropic"] | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    file: Path = Path(".outputs/jianmu/chat.db")
    thread: str = "main"
    namespace: str = "chat"
    system_prompt: str = (
        "You are a helpful assistant with a long-term memory. Store what is worth knowing in later "
        "conversations with memory_add; look things up with memory_search before you say you do not know."
    )
    memory: MemoryUse = "tools"
    max_steps: int = Field(20, ge=1)
    tools: tuple[str, ...] = ()
    skills: tuple[Path, ...] = ()

    @field_validator("tools", "skills", mode="before")
    @classmethod
    def _parted(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, str):
            return value
        mark = "," if info.field_name == "tools" else os.pathsep
        return [part.strip() for part in value.split(mark) if part.strip()]


def load_settings(
    flags: Mapping[str, Any], *, environ: Mapping[str, str] = os.environ, folder: Path | None = None
) -> ChatSettings:
    """Return the settings: a flag wins over the environment, which wins over the file.

    Args:
        flags: By name; None = not given.
        environ: The environment.
        folder: Where jianmu.toml may be; None = the current folder.

    Raises:
        ConfigError: A value that cannot be used, or a file that is no TOML; the message names it.
    """
    path = (folder or Path()) / "jianmu.toml"
    values: dict[str, Any] = {**_from_file(path), **_from_environment(environ)}
    values.update({name: value for name, value in flags.items() if value is not None})
    try:
        settings = ChatSettings.model_validate(values)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in wrong["loc"])
        known = ", ".join(ChatSettings.model_fields)
        raise ConfigError(f"chat setting {name!r}: {wrong['msg']}; the settings are {known}") from None
    return settings


def _from_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    try:
        section = tomllib.loads(text).get("chat", {})
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}") from error
    if not isinstance(section, dict):
        raise ConfigError(f"{path}: [chat] must be a table")
    return section


def _from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    found = {name: environ.get(f"{_PREFIX}{name.upper()}") for name in ChatSettings.model_fields}
    return {name: value for name, value in found.items() if value}


def make_model(settings: ChatSettings, *, environ: Mapping[str, str] = os.environ) -> ChatModel:
    """Return the chat model that the settings name.

    Raises:
        ConfigError: No model is set, or its key is missing; the message says how to set it.
        MissingExtraError: The provider's package is not installed.
    """
    if not settings.model:
        raise ConfigError(HOW_TO_SET_A_MODEL)
    if settings.model == "echo":
        return EchoChatModel()
    key = None
    if settings.api_key_env:
        key = environ.get(settings.api_key_env)
        if not key:
            raise ConfigError(
                f"the environment variable {settings.api_key_env}, which api_key_env names, is not set"
            )
    provider = settings.provider or ("anthropic" if settings.model.startswith("claude") else "openai")
    if provider == "anthropic":
        return AnthropicChatModel(settings.model, base_url=settings.base_url, api_key=key)
    return OpenAIChatModel(settings.model, base_url=settings.base_url, api_key=key)
