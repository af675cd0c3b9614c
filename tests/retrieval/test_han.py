"""Traditional and simplified characters find each other."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jianmu.memory import SqliteLongTermMemory
from jianmu.retrieval import UseEmbedder
from jianmu.retrieval.han import HanForms
from jianmu.retrieval.tokens import Analyzer

FORMS = HanForms()


def test_each_form_becomes_the_other() -> None:
    assert FORMS.simplified("我喜歡貓和電腦") == "我喜欢猫和电脑"
    assert FORMS.traditional("我喜欢猫和电脑") == "我喜歡貓和電腦"
    assert FORMS.traditional("家里只有周末") == "家裏只有周末"  # 家 is not 傢, 只 not 隻, 周 not 週


@given(st.text(alphabet=st.characters(min_codepoint=0x3400, max_codepoint=0x9FFF)))
def test_a_text_keeps_its_length_and_stays_once_it_is_simplified(text: str) -> None:
    simple = FORMS.simplified(text)
    assert len(simple) == len(text)
    assert FORMS.simplified(FORMS.traditional(simple)) == FORMS.simplified(simple)


def test_only_a_question_with_other_forms_asks_for_more() -> None:
    analyzer = Analyzer()
    assert analyzer.other_forms("plain English") == {}
    assert analyzer.other_forms("你好") == {}
    assert {"欢", "喜欢"} <= set(analyzer.other_forms("喜歡"))
    assert {"歡", "喜歡"} <= set(analyzer.other_forms("喜欢"))


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("我對花生過敏", "花生过敏吗"),
        ("我对花生过敏", "對花生過敏嗎"),
        ("下週要去臺灣開會", "去台湾开会"),
        ("東京で会議がある", "東京 会議"),
        ("내일 서울에서 회의가 있다", "서울 회의"),
        ("我在用 PyTorch 訓練模型", "pytorch 训练"),
        ("张三喜欢滑雪", "張三喜歡什麼"),
    ],
)
def test_a_memory_is_found_in_either_form_and_among_others(tmp_path: Path, stored: str, asked: str) -> None:
    with SqliteLongTermMemory(tmp_path / "m.db", None) as memory:
        memory.record_many(
            [{"inputs": text} for text in ("今天天氣很好", "天气不错", stored, "昨日は雨", "날씨가 좋다")]
        )
        hit = memory.retrieve(asked, limit=1)[0]
        assert hit["content"] == stored
        assert hit["score"] is not None
        assert hit["score"] > 0.3


def test_a_day_told_from_today_finds_what_was_said_then(tmp_path: Path) -> None:
    now = 1_684_317_600.0  # Wednesday, 17 May 2023
    with SqliteLongTermMemory(tmp_path / "m.db", None, clock=lambda: now) as memory:
        for day in (8, 12, 15, 16):
            memory.record(f"我们讨论了第{day}号方案", time=date(2023, 5, day))
        assert "12" in memory.retrieve("上周五讨论了什么方案", limit=1)[0]["content"]
        assert "16" in memory.retrieve("昨天讨论了什么方案", limit=1)[0]["content"]
        assert "12" in memory.retrieve("last Friday 方案", limit=1)[0]["content"]


@pytest.mark.parametrize("asked", ["张三喜欢什么", "張三喜歡什麼", "What does 张三 like"])
def test_a_speaker_is_known_by_a_chinese_name(tmp_path: Path, asked: str) -> None:
    with SqliteLongTermMemory(tmp_path / "m.db", None) as memory:
        memory.record("我喜欢滑雪", speaker="李四")
        memory.record("我喜欢滑冰", speaker="张三")
        assert memory.retrieve(asked, limit=1)[0]["content"] == "我喜欢滑冰"


def test_the_offline_embedder_reads_both_forms_alike() -> None:
    embedder = UseEmbedder()
    traditional, simple, japanese, kanji = embedder.embed_documents(
        ["我喜歡貓和電腦", "我喜欢猫和电脑", "東京で会議がある", "东京で会议がある"]
    )
    assert traditional @ simple > 0.999
    assert japanese @ kanji < 0.999
