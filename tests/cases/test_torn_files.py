"""T1: files torn by a crash, text that some readers split, and files that grow large.

The cost of large files is in tests/checkpoint/test_file_cost.py; every kind of torn end in test_file_torn.py.
"""

import json
from pathlib import Path

from jianmu.memory import FileCheckpointer

SPLITTERS = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\rh\r\ni\nj"


def test_a_record_torn_at_any_byte_is_isolated_and_the_next_one_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    store = FileCheckpointer(tmp_path, durability="flush")
    for n in (1, 2, 3):
        store.save_checkpoint("t", n, {"n": n, "text": "汉字😀"})
    whole = path.read_bytes()
    for cut in range(whole.rindex(b"\n", 0, -1) + 1, len(whole)):
        path.write_bytes(whole[:cut])
        fresh = FileCheckpointer(tmp_path, durability="flush")
        expected = 3 if cut == len(whole) - 1 else 2  # with only the newline missing, the record is whole
        assert fresh.get_checkpoint("t")["state"]["n"] == expected  # type: ignore[index]
        fresh.save_checkpoint("t", 4, {"n": 4, "text": "汉字😀"})
        again = FileCheckpointer(tmp_path, durability="flush")
        assert again.get_checkpoint("t")["state"]["n"] == 4  # type: ignore[index]
        lines = path.read_bytes().split(b"\n")
        assert [json.loads(line)["state"]["n"] for line in lines[:-1]] == [*range(1, expected + 1), 4]


def test_lines_are_split_at_newlines_only(tmp_path: Path) -> None:
    for step in (1, 2):
        FileCheckpointer(tmp_path).save_checkpoint("t", step, {"text": SPLITTERS, SPLITTERS: step})
    assert (tmp_path / "t.jsonl").read_bytes().count(b"\n") == 2
    store = FileCheckpointer(tmp_path)
    assert store.get_checkpoint("t")["state"] == {"text": SPLITTERS, SPLITTERS: 2}  # type: ignore[index]
    assert store.get_checkpoint("t", step=1)["state"] == {"text": SPLITTERS, SPLITTERS: 1}  # type: ignore[index]
