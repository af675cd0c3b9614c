"""A slice of the proof; `make crash-agent` runs the whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from .proof import prove


@pytest.mark.timeout(180)
def test_what_was_saved_is_never_asked_for_again(tmp_path: Path) -> None:
    tally = prove(12, tmp_path, seed=7)
    assert not tally.wrong, "\n".join(tally.lines())
    assert tally.kills == 12


@pytest.mark.timeout(180)
def test_the_proof_notices_an_agent_that_forgets(tmp_path: Path) -> None:
    tally = prove(3, tmp_path, seed=5, stores=["forgetful"])
    assert any("keys" in wrong for wrong in tally.wrong)
