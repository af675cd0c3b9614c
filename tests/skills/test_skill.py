"""A skill folder is read in three steps, and nothing outside it is ever read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jianmu.errors import SkillError
from jianmu.skills import Skill
from jianmu.skills.front_matter import parse_front_matter

HEAD = "---\nname: refund\ndescription: How to refund an order.\n---\n"


def make(folder: Path, text: str = HEAD + "# Refund\nRead `policy.md`.\n", **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    for name, content in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return folder


def test_a_skill_discloses_headline_then_instructions_then_files(tmp_path: Path) -> None:
    skill = Skill(make(tmp_path / "refund", policy="三十天内可退", data__codes="A1"))
    assert skill.headline == "refund: How to refund an order."
    assert skill.instructions == "# Refund\nRead `policy.md`."
    assert skill.files() == ["data/codes", "policy"]
    assert skill.read("policy") == "三十天内可退"
    assert skill.read("data/codes") == "A1"


def test_an_edit_is_seen_at_the_next_read(tmp_path: Path) -> None:
    skill = Skill(make(tmp_path / "refund"))
    make(tmp_path / "refund", HEAD + "New way.")
    assert skill.instructions == "New way."


def test_other_keys_of_the_head_are_kept(tmp_path: Path) -> None:
    text = "---\nname: a\ndescription: b\nlicense: MIT\nmetadata:\n  author: me\n---\nbody"
    assert Skill(make(tmp_path / "a", text)).metadata == {"license": "MIT", "metadata": {"author": "me"}}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("no head", "must start with"),
        ("---\nname: a\n", "must start with"),
        ("---\ndescription: b\n---\n", "needs 'name: ...'"),
        ("---\nname: a\n---\n", "needs 'description: ...'"),
        ("---\nname: 2024-01-01\ndescription: b\n---\n", "name must be non-empty text, not date"),
        ("---\nname: a\ndescription: ' '\n---\n", "description must be non-empty text"),
        ("---\nname: a b\ndescription: b\n---\n", "letters, digits"),
        ("---\nname: ../a\ndescription: b\n---\n", "letters, digits"),
        (f"---\nname: a\ndescription: {'x' * 1025}\n---\n", "at most 1024"),
        ("---\n- a\n- b\n---\n", "'key: value' lines"),
        ("---\nname: [\n---\n", "no YAML"),
        ("---\n!!python/object/apply:os.system ['true']\n---\n", "no YAML"),
        ("---\nname: " + "[" * 3000 + "\n---\n", "no YAML"),
    ],
)
def test_a_head_that_cannot_be_used_says_why(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(SkillError, match=says):
        Skill(make(tmp_path / "bad", text))


@given(st.text())
def test_any_text_is_parsed_or_refused(text: str) -> None:
    for candidate in (text, f"---\n{text}\n---\n", f"---\nname: a\ndescription: b\nmore: {text}\n---\nx"):
        try:
            head = parse_front_matter(candidate, "SKILL.md")
        except SkillError:
            continue
        assert head.name
        assert head.description.strip()


def test_windows_line_ends_and_a_byte_order_mark_are_read() -> None:
    head = parse_front_matter("\ufeff---\r\nname: 退款\r\ndescription: b\r\n---\r\nbody\r\n", "SKILL.md")
    assert (head.name, head.body) == ("退款", "body")


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "a/../../secret",
        "/etc/passwd",
        "..\\secret",
        "C:\\x",
        "C:x",
        "\\\\host\\share\\x",
        "a\0b",
        "",
        ".",
    ],
)
def test_a_path_never_leaves_the_folder(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret").write_text("key", encoding="utf-8")
    skill = Skill(make(tmp_path / "refund", a__b="x"))
    with pytest.raises(SkillError):
        skill.read(path)


def test_an_absolute_path_into_the_folder_is_refused_too(tmp_path: Path) -> None:
    skill = Skill(make(tmp_path / "refund", policy="x"))
    with pytest.raises(SkillError, match="relative"):
        skill.read(str(skill.path / "policy"))


@pytest.mark.skipif(sys.platform == "win32", reason="symlinks need a privilege there")
def test_a_symlink_never_leads_out(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("key", encoding="utf-8")
    skill = Skill(make(tmp_path / "refund", policy="x"))
    (skill.path / "file").symlink_to(outside / "secret")
    (skill.path / "dir").symlink_to(outside)
    (skill.path / "loop").symlink_to(skill.path / "loop")
    (skill.path / "alias").symlink_to("policy")
    for path in ("file", "dir/secret", "loop"):
        with pytest.raises(SkillError):
            skill.read(path)
    assert skill.files() == ["alias", "policy"]
    assert skill.read("alias") == "x"


@pytest.mark.skipif(sys.platform == "win32", reason="symlinks need a privilege there")
def test_a_skill_file_that_links_out_is_refused(tmp_path: Path) -> None:
    outside = make(tmp_path / "real")
    folder = tmp_path / "fake"
    folder.mkdir()
    (folder / "SKILL.md").symlink_to(outside / "SKILL.md")
    with pytest.raises(SkillError):
        Skill(folder)


def test_what_is_too_big_or_not_text_is_refused(tmp_path: Path) -> None:
    skill = Skill(make(tmp_path / "refund", big="x" * 262_145))
    (skill.path / "bin").write_bytes(b"\xff\xfe")
    with pytest.raises(SkillError, match="262145 bytes"):
        skill.read("big")
    with pytest.raises(SkillError, match="not UTF-8"):
        skill.read("bin")


def test_discover_finds_the_skills_below_a_folder(tmp_path: Path) -> None:
    make(tmp_path / "one", "---\nname: zeta\ndescription: z\n---\n")
    make(tmp_path / "two", "---\nname: alpha\ndescription: a\n---\n")
    (tmp_path / "no-skill").mkdir()
    assert [skill.name for skill in Skill.discover(tmp_path)] == ["alpha", "zeta"]
    make(tmp_path / "three", "---\nname: alpha\ndescription: a\n---\n")
    with pytest.raises(SkillError, match="named alpha"):
        Skill.discover(tmp_path)


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SkillError, match="cannot be opened"):
        Skill(tmp_path / "none")


@pytest.mark.parametrize("path", [".env", ".git__config", "data__.hidden"])
def test_a_hidden_file_is_no_file_of_a_skill(tmp_path: Path, path: str) -> None:
    skill = Skill(make(tmp_path / "s", **{path: "secret"}))
    with pytest.raises(SkillError, match="no file of this skill"):
        skill.read(path.replace("__", "/"))
