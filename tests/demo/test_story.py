"""A demo that went wrong says so."""

import dataclasses

import pytest

from jianmu.demo.effects import EffectCounts
from jianmu.demo.story import Answer, Death, Story


@pytest.fixture
def good() -> Story:
    death = Death(process=1, step=10, tick=10, turn=3, running=["read the turn"], resumed_step=11)
    return Story(
        turns=5,
        facts=4,
        deaths=[death],
        effects=EffectCounts(lines=4, distinct_keys=4, refused=1),
        memories=4,
        answers=[Answer("q", "a", True)],
    )


def test_a_good_story_is_good(good: Story) -> None:
    assert good.is_good
    assert good.as_dict()["exactly_once"] is True


@pytest.mark.parametrize(
    "change",
    [
        {"effects": EffectCounts(5, 4, 0)},
        {"effects": EffectCounts(5, 5, 0)},
        {"effects": EffectCounts(3, 3, 0)},
        {"memories": 3},
        {"answers": [Answer("q", "No results.", False)]},
        {"deaths": [Death(1, 10, 10, 3, [], resumed_step=12)]},
        {"deaths": [Death(1, 10, 10, 3, [], resumed_step=10)]},
        {"deaths": [Death(1, 10, 10, 3, [], resumed_step=None)]},
    ],
    ids=range(8),
)
def test_anything_lost_doubled_or_out_of_step_is_not(good: Story, change: dict[str, object]) -> None:
    assert not dataclasses.replace(good, **change).is_good  # type: ignore[arg-type]
