"""What was saved comes back equal and of the same type, also in another process."""

import json
import subprocess
import sys
from pathlib import Path

from jianmu import StateManager
from jianmu.codec.dump import dump_json
from tests.state.kinds import Everything, everything, image

READER = """
import json, sys
from jianmu import StateManager
from tests.state.kinds import Everything, image
state = StateManager(Everything)
state.initialize(json.load(sys.stdin))
print(image(state.get()))
"""


def saved() -> tuple[str, bytes]:
    state = StateManager(Everything)
    state.initialize(everything())
    return image(state.get()), dump_json(state.dump_checkpoint())


def test_a_fresh_process_gets_every_kind_back_equal_and_of_the_same_type() -> None:
    before, text = saved()
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-c", READER], input=text, capture_output=True, cwd=root, check=False
    )
    assert run.stderr.decode() == ""
    assert run.stdout.decode().strip() == before


def test_what_is_read_is_what_was_put_in() -> None:
    state = StateManager(Everything)
    state.initialize(everything())
    got, put = state.get(), everything()
    for name in Everything.model_fields:
        assert image(getattr(got, name)) == image(getattr(put, name)), name
        if name != "messages":
            assert type(getattr(got, name)) is type(getattr(put, name))


def test_saving_a_restored_state_gives_the_same_bytes() -> None:
    _, text = saved()
    state = StateManager(Everything)
    state.initialize(json.loads(text))
    assert json.loads(dump_json(state.dump_checkpoint())) == json.loads(text)
    assert dump_json(state.dump_checkpoint()) == text


def test_a_state_stored_by_each_released_version_is_still_read() -> None:
    samples = sorted((Path(__file__).parent / "samples").glob("*.json"))
    assert samples
    for sample in samples:
        state = StateManager(Everything)
        state.initialize(json.loads(sample.read_text("utf-8")))
        assert image(state.get()) == saved()[0]
