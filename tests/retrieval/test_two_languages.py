"""A memory that is written in two languages answers a question in either, with the default embedder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jianmu.memory import SqliteLongTermMemory

FACTS = (
    "My manager is called Ines",
    "我的血压有点高",
    "妈妈的生日是五月三日",
    "Our wifi password hint is the cat's birthday",
    "我在学葡萄牙语",
    "My dentist is Dr. Okafor",
    "我养了一只橘猫叫麻薯",
    "The car insurance runs out in March",
    "我对花生过敏",
    "I prefer window seats on trains",
    "我们周五晚上打羽毛球",
    "The landlord wants the rent on the first",
    "我的毕业论文写的是城市交通",
    "My sister moved to Porto last year",
    "我喜欢喝乌龙茶",
    "The spare key is under the blue pot",
    "我每天早上六点跑步",
    "Dad's favourite composer is Bach",
    "我的银行卡在招商银行",
    "The kids' school starts at eight",
)


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteLongTermMemory]:
    path: Path = tmp_path_factory.mktemp("two") / "memory.db"
    with SqliteLongTermMemory(path) as memory:
        memory.record_many({"inputs": fact} for fact in FACTS)
        yield memory


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("what is my blood pressure like", "我的血压有点高"),
        ("我的牙医是谁", "My dentist is Dr. Okafor"),
        ("When is mum's birthday?", "妈妈的生日是五月三日"),
        ("我的经理叫什么", "My manager is called Ines"),
        ("which tea do I like", "我喜欢喝乌龙茶"),
        ("备用钥匙在哪里", "The spare key is under the blue pot"),
        ("what am I allergic to", "我对花生过敏"),
        ("房租什么时候交", "The landlord wants the rent on the first"),
        ("爸爸喜欢哪个作曲家", "Dad's favourite composer is Bach"),
        ("what is my cat called", "我养了一只橘猫叫麻薯"),
        ("孩子们几点上学", "The kids' school starts at eight"),
        ("车险什么时候到期", "The car insurance runs out in March"),
    ],
)
def test_the_answer_stands_first_in_whatever_language_it_is(
    memory: SqliteLongTermMemory, question: str, answer: str
) -> None:
    assert memory.retrieve(question, limit=1)[0]["content"] == answer


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("which seats do I prefer on trains", "I prefer window seats on trains"),
        ("where did my sister move", "My sister moved to Porto last year"),
        ("我在学什么语言", "我在学葡萄牙语"),
        ("我的银行卡是哪家银行的", "我的银行卡在招商银行"),
        ("我们什么时候打羽毛球", "我们周五晚上打羽毛球"),
    ],
)
def test_the_other_language_does_not_push_in_front(
    memory: SqliteLongTermMemory, question: str, answer: str
) -> None:
    assert memory.retrieve(question, limit=1)[0]["content"] == answer
