"""RuntimeCheckpointConfig: from code, a file or the environment, and the checkpointer it leads to."""

import contextlib
from pathlib import Path
from typing import Any

import pytest

from jianmu import RuntimeCheckpointConfig
from jianmu.errors import ConfigError
from jianmu.memory import (
    FileCheckpointer,
    InMemoryCheckpointer,
    NullCheckpointer,
    SqliteCheckpointer,
    create_checkpointer,
)
from jianmu.memory.checkpoint.base import HistoryCapable


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_defaults_are_off_file_and_every_tick() -> None:
    config = RuntimeCheckpointConfig()
    assert (config.enabled, config.backend, config.interval) == (False, "file", 1)
    assert RuntimeCheckpointConfig.load(env={}) == config


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"backend": "redis"},
            'backend must be one of "file", "memory", "null", "sqlite", "postgres", not \'redis\'',
        ),
        ({"backend": None}, "backend must be one of"),
        ({"interval": 0}, "interval must be a whole number of 1 or more, not 0"),
        ({"interval": True}, "interval must be a whole number"),
        ({"interval": "1"}, "interval must be a whole number"),
        ({"enabled": "yes"}, "enabled must be true or false"),
        ({"durability": "never"}, 'durability must be one of "fsync", "flush"'),
        ({"history": -1}, "history must be"),
        ({"path": ""}, "path must be"),
        ({"path": 1}, "path must be"),
    ],
)
def test_a_bad_value_names_the_setting_and_what_is_allowed(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        RuntimeCheckpointConfig(**settings)
    assert said in str(error.value)


def test_a_file_gives_the_settings(tmp_path: Path) -> None:
    Path("jianmu.toml").write_text(
        '[other]\nx = 1\n[checkpoint]\nenabled = true\nbackend = "memory"\ninterval = 5\nhistory = 7\n',
        "utf-8",
    )
    expected = RuntimeCheckpointConfig(enabled=True, backend="memory", interval=5, history=7)
    assert RuntimeCheckpointConfig.load(env={}) == expected
    assert RuntimeCheckpointConfig.load(tmp_path / "jianmu.toml", env={}) == expected


def test_the_environment_wins_over_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("jianmu.toml").write_text('[checkpoint]\nbackend = "memory"\ninterval = 5\n', "utf-8")
    env = {"JIANMU_CHECKPOINT_BACKEND": "null", "JIANMU_CHECKPOINT_ENABLED": "Yes", "HOME": "/"}
    expected = RuntimeCheckpointConfig(enabled=True, backend="null", interval=5)
    assert RuntimeCheckpointConfig.load(env=env) == expected
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert RuntimeCheckpointConfig.load() == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[checkpoint]\nbackend = "redis"', "checkpoint.backend must be one of"),
        ('[checkpoint]\nbackned = "file"', "checkpoint.backned is no setting; there are enabled, backend"),
        ("checkpoint = 3", "checkpoint must be a table"),
        ("[checkpoint", "is not TOML"),
        ("[checkpoint]\nenabled = 1", "checkpoint.enabled must be true or false"),
    ],
)
def test_a_bad_file_names_itself_and_the_setting(text: str, said: str) -> None:
    Path("jianmu.toml").write_text(text, "utf-8")
    with pytest.raises(ConfigError) as error:
        RuntimeCheckpointConfig.load(env={})
    assert "jianmu.toml" in str(error.value)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("BACKEND", "redis", "JIANMU_CHECKPOINT_BACKEND must be one of"),
        ("INTERVAL", "often", "JIANMU_CHECKPOINT_INTERVAL must be a whole number"),
        ("INTERVAL", "0", "JIANMU_CHECKPOINT_INTERVAL must be a whole number of 1 or more"),
        ("ENABLED", "maybe", "JIANMU_CHECKPOINT_ENABLED must be true or false"),
        ("BACKND", "file", "JIANMU_CHECKPOINT_BACKND is no setting"),
    ],
)
def test_a_bad_variable_is_named(name: str, value: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        RuntimeCheckpointConfig.load(env={f"JIANMU_CHECKPOINT_{name}": value})
    assert said in str(error.value)


def test_a_file_that_was_named_must_be_there() -> None:
    with pytest.raises(ConfigError, match=r"elsewhere\.toml"):
        RuntimeCheckpointConfig.load("elsewhere.toml", env={})


def test_a_secret_in_the_connection_string_is_not_shown() -> None:
    config = RuntimeCheckpointConfig(backend="postgres", dsn="postgresql://u:hunter2@h/d")
    assert "hunter2" not in repr(config)
    with pytest.raises(ConfigError) as error:
        RuntimeCheckpointConfig(dsn=b"postgresql://u:hunter2@h/d")  # type: ignore[arg-type]
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("backend", "kind"),
    [
        ("file", FileCheckpointer),
        ("memory", InMemoryCheckpointer),
        ("null", NullCheckpointer),
        ("sqlite", SqliteCheckpointer),
    ],
)
def test_a_back_end_is_made_by_its_name(backend: str, kind: type) -> None:
    store = create_checkpointer(RuntimeCheckpointConfig(backend=backend))
    assert type(store) is kind
    if isinstance(store, HistoryCapable):
        store.save_checkpoint("t", 1, {"n": 1})
        assert store.get_checkpoint("t")["state"] == {"n": 1}
        store.close()


def test_sqlite_takes_its_file_and_durability_from_the_settings(tmp_path: Path) -> None:
    config = RuntimeCheckpointConfig(backend="sqlite", path=tmp_path / "my.db", durability="flush")
    with contextlib.closing(create_checkpointer(config)) as store:  # type: ignore[type-var]
        store.save_checkpoint("t", 1, {"n": 1})
    assert (tmp_path / "my.db").exists()


def test_settings_reach_the_back_end(tmp_path: Path) -> None:
    config = RuntimeCheckpointConfig(backend="file", path=tmp_path / "here", durability="flush")
    create_checkpointer(config).save_checkpoint("t", 1, {"n": 1})
    assert (tmp_path / "here" / "t.jsonl").exists()
    memory = create_checkpointer(RuntimeCheckpointConfig(backend="memory", history=2))
    for step in range(5):
        memory.save_checkpoint("t", step, {})
    assert isinstance(memory, InMemoryCheckpointer)
    assert len(memory.list_checkpoints("t")) == 2


def test_without_a_config_the_project_decides() -> None:
    Path("jianmu.toml").write_text('[checkpoint]\nbackend = "memory"\n', "utf-8")
    assert isinstance(create_checkpointer(), InMemoryCheckpointer)


def test_the_default_folder_is_below_outputs(tmp_path: Path) -> None:
    create_checkpointer(RuntimeCheckpointConfig()).save_checkpoint("t", 1, {})
    assert (tmp_path / ".outputs/jianmu/checkpoints/t.jsonl").exists()


def test_postgres_without_a_server_to_talk_to_names_the_setting() -> None:
    with pytest.raises(ConfigError, match="JIANMU_CHECKPOINT_DSN"):
        create_checkpointer(RuntimeCheckpointConfig(backend="postgres"))
