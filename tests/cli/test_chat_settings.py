"""Which setting wins, and what a wrong one says."""

from __future__ import annotations

from pathlib import Path

import pytest

from jianmu.agents import AnthropicChatModel, EchoChatModel, OpenAIChatModel
from jianmu.cli.chat.settings import ChatSettings, load_settings, make_model
from jianmu.errors import ConfigError
from jianmu.project import RuntimeCheckpointConfig


def test_a_flag_wins_over_the_environment_which_wins_over_the_file(tmp_path: Path) -> None:
    text = '[chat]\nmodel = "file"\nthread = "file"\nnamespace = "file"\n'
    (tmp_path / "jianmu.toml").write_text(text, encoding="utf-8")
    environ = {"JIANMU_CHAT_MODEL": "environment", "JIANMU_CHAT_THREAD": "environment"}
    settings = load_settings({"model": "flag", "thread": None}, environ=environ, folder=tmp_path)
    assert (settings.model, settings.thread, settings.namespace) == ("flag", "environment", "file")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[chat", "jianmu.toml"),
        ("chat = 3", "must be a table"),
        ('[chat]\nmemory = "all"', "'memory'.*'tools', 'auto' or 'both'"),
        ('[chat]\nprovider = "x"', "'provider'"),
        ("[chat]\nmax_steps = 0", "'max_steps'"),
        ('[chat]\napi_key = "sk-secret"', "'api_key'"),
    ],
)
def test_a_wrong_file_says_what_is_wrong_and_shows_no_value(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "jianmu.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=says) as caught:
        load_settings({}, environ={}, folder=tmp_path)
    assert "sk-secret" not in str(caught.value)


def test_other_sections_of_the_file_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "jianmu.toml").write_text('[checkpoint]\nbackend = "sqlite"\n', encoding="utf-8")
    assert load_settings({}, environ={}, folder=tmp_path) == ChatSettings()


def test_the_provider_is_read_off_the_name() -> None:
    environ = {"K": "key"}
    named = {"echo": EchoChatModel, "claude-x": AnthropicChatModel, "gpt-x": OpenAIChatModel}
    for name, kind in named.items():
        assert isinstance(make_model(ChatSettings(model=name, api_key_env="K"), environ=environ), kind)


def test_a_missing_key_variable_is_named() -> None:
    with pytest.raises(ConfigError, match="MY_KEY"):
        make_model(ChatSettings(model="gpt-x", api_key_env="MY_KEY"), environ={})


@pytest.mark.parametrize("kind", ["folder", "bytes"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "jianmu.toml"
    path.mkdir() if kind == "folder" else path.write_bytes(b"[chat]\nmodel = '\xff'")
    with pytest.raises(ConfigError, match=r"jianmu\.toml"):
        load_settings({}, environ={}, folder=tmp_path)
    with pytest.raises(ConfigError, match=r"jianmu\.toml"):
        RuntimeCheckpointConfig.load(path)
