"""A slice of the proof; `make crash-agent` runs the whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from .proof import prove


@pytest.mark.timeout(180)
@pytest.mark.parametrize("store", ["file", "sqlite"])
def test_what_was_saved_is_never_asked_for_again_and_one_effect_at_most_is_in_doubt(
    tmp_path: Path, store: str
) -> None:
    tally = prove(10, tmp_path, seed=7, store=store)
    assert not tally.wrong, "\n".join(tally.lines())
    assert tally.kills == 10
    assert max(tally.per_kill) <= 1


@pytest.mark.timeout(180)
def test_the_proof_notices_an_agent_that_forgets(tmp_path: Path) -> None:
    tally = prove(3, tmp_path, seed=5, store="forgetful")
    assert any("keys" in wrong for wrong in tally.wrong)
