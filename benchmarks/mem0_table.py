"""mem0 beside SqliteLongTermMemory: the same conversation, the same vectors, one run.

    python benchmarks/mem0_table.py --data locomo10.json [--conversations 2] [--json]

Needs the extras ``mem0`` and ``local``; a row for chroma too where ``chromadb`` is installed. Texts are
recorded verbatim (``infer=False``). Every text is embedded before the clock starts: mem0 gets the vectors
from a local server in OpenAI's wire format, so the embedder's own time is in neither.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.setdefault("MEM0_TELEMETRY", "False")
os.environ.setdefault("MEM0_DIR", tempfile.mkdtemp(prefix="mem0-home-"))

from tests.mem0 import server as wire_server

from jianmu.memory import Mem0LongTermMemory, SqliteLongTermMemory
from jianmu.retrieval import UseEmbedder

K = 10


def conversation(data: Any) -> tuple[list[tuple[str, str, str, str, datetime]], Any]:
    """Turns as (id, speaker, text, session, time) and questions with their evidence."""
    talk, turns = data["conversation"], []
    number = 1
    while f"session_{number}" in talk:
        when = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y")
        for turn in talk[f"session_{number}"]:
            caption = f" [image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            turns.append(
                (
                    turn["dia_id"],
                    turn["speaker"],
                    turn["text"] + caption,
                    str(number),
                    when.replace(tzinfo=UTC),
                )
            )
        number += 1
    known = {turn[0] for turn in turns}
    asked = [(qa["question"], set(qa.get("evidence") or ()) & known) for qa in data["qa"]]
    return turns, [(question, evidence) for question, evidence in asked if evidence]


class CachedUse(UseEmbedder):
    """The shipped embedder, each text embedded once and before the clock starts."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[str, Any] = {}

    def embed_documents(self, texts: Any) -> Any:
        missing = [text for text in texts if text not in self._known]
        if missing:
            self._known.update(zip(missing, super().embed_documents(missing), strict=True))
        return [self._known[text] for text in texts]

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])[0]


def mem0_config(store: str, folder: Path, url: str, dimension: int) -> dict[str, Any]:
    places = {
        "qdrant": {
            "path": str(folder / "qdrant"),
            "collection_name": "memories",
            "embedding_model_dims": dimension,
            "on_disk": True,
        },
        "chroma": {"path": str(folder / "chroma"), "collection_name": "memories"},
    }
    served = {"api_key": "none", "openai_base_url": url + "/v1"}
    return {
        "vector_store": {"provider": store, "config": places[store]},
        "embedder": {"provider": "openai", "config": {**served, "model": "use", "embedding_dims": dimension}},
        "llm": {"provider": "openai", "config": served},
        "history_db_path": str(folder / "history.db"),
    }


def measure(memory: Any, folder: Path, turns: Any, questions: Any, rich: bool) -> dict[str, float]:
    writes, ids = [], {}
    for turn_id, speaker, text, session, when in turns:
        start = time.perf_counter()
        if rich:
            result = memory.record(text, speaker=speaker, session=session, time=when)
        else:
            result = memory.record(f"{speaker}: {text}")
        writes.append(time.perf_counter() - start)
        ids.setdefault(result["id"], set()).add(turn_id)
    searches, recalls = [], []
    for question, evidence in questions:
        start = time.perf_counter()
        hits = memory.retrieve(question, limit=K)
        searches.append(time.perf_counter() - start)
        found = set().union(*(ids.get(hit["id"], set()) for hit in hits)) if hits else set()
        recalls.append(len(found & evidence) / len(evidence))
    memory.close()
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {
        "write_ms": statistics.median(writes) * 1000,
        "search_ms": statistics.median(searches) * 1000,
        "recall": statistics.mean(recalls) * 100,
        "bytes": size,
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--conversations", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.data is None:
        print("skipped: give --data a LoCoMo file (a list of conversations)")
        return 0
    stores = ["qdrant", *(["chroma"] if importlib.util.find_spec("chromadb") else [])]
    rows: dict[str, list[dict[str, float]]] = {}
    chats = 0
    for data in json.loads(options.data.read_text("utf-8"))[: options.conversations]:
        turns, questions = conversation(data)
        texts = [f"{t[1]}: {t[2]}" for t in turns] + [t[2] for t in turns] + [q for q, _ in questions]
        embedder = CachedUse()
        embedder.embed_documents(texts)
        with wire_server.serve() as wire, tempfile.TemporaryDirectory() as scratch:
            wire.embedder = lambda text, use=embedder: [float(x) for x in use.embed_query(text)]
            for name in ["sqlite", "sqlite words", *stores]:
                folder = Path(scratch) / name
                folder.mkdir()
                memory: Any
                if name.startswith("sqlite"):
                    choice = None if name.endswith("words") else embedder
                    memory = SqliteLongTermMemory(folder / "memory.db", embedder=choice)
                else:
                    memory = Mem0LongTermMemory(
                        mem0_config(name, folder, wire.url, embedder.dimension), infer=False
                    )
                rows.setdefault(name, []).append(
                    measure(memory, folder, turns, questions, name.startswith("sqlite"))
                )
            chats += len(wire.chats())
    table = {
        name: {key: statistics.mean(run[key] for run in runs) for key in runs[0]}
        for name, runs in rows.items()
    }
    if options.json:
        print(json.dumps({"rows": table, "model_calls": chats}))
        return 0
    print(f"{'':<14}{'write p50 ms':>14}{'search p50 ms':>15}{'recall@10 %':>13}{'KiB on disk':>13}")
    for name, row in table.items():
        print(
            f"{name:<14}{row['write_ms']:>14.2f}{row['search_ms']:>15.2f}{row['recall']:>13.1f}"
            f"{row['bytes'] / 1024:>13.0f}"
        )
    print(f"model calls: {chats}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
