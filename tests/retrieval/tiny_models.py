"""Tiny models made on the spot, so that each library's real code runs without a download."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
_ENGLISH = "i like likes green black tea coffee the train leaves at nine query passage :"
WORDS = [*_SPECIAL, *_ENGLISH.split(), *"我对花生过敏"]
DIMENSION = 16


def table() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((len(WORDS), DIMENSION)).astype(np.float32)


def tokenizer() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = {word: number for number, word in enumerate(WORDS)}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return made


def static_model(folder: Path) -> str:
    """A model2vec model in a folder."""
    from model2vec import StaticModel

    StaticModel(table(), tokenizer()).save_pretrained(str(folder))
    return str(folder)


def onnx_model(folder: Path) -> str:
    """An ONNX model that looks each token up, registered with fastembed under the name that is returned."""
    import onnx
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType
    from onnx import TensorProto, helper, numpy_helper

    weights = numpy_helper.from_array(table(), "table")
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
        for name in ("input_ids", "attention_mask")
    ]
    output = helper.make_tensor_value_info("last", TensorProto.FLOAT, ["batch", "length", DIMENSION])
    look_up = helper.make_node("Gather", ["table", "input_ids"], ["last"])
    model = helper.make_model(
        helper.make_graph([look_up], "tiny", inputs, [output], [weights]),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    model.ir_version = 9
    onnx.save(model, str(folder / "model.onnx"))
    tokenizer().save(str(folder / "tokenizer.json"))
    settings: dict[str, dict[str, Any]] = {
        "config.json": {"pad_token_id": 0, "max_position_embeddings": 64},
        "tokenizer_config.json": {"model_max_length": 64, "max_length": 64, "pad_token": "[PAD]"},
        "special_tokens_map.json": {"pad_token": "[PAD]", "unk_token": "[UNK]"},
    }
    for name, content in settings.items():
        (folder / name).write_text(json.dumps(content), "utf-8")
    known = {model["model"] for model in TextEmbedding.list_supported_models()}
    if "tests/tiny" not in known:
        TextEmbedding.add_custom_model(
            model="tests/tiny",
            pooling=PoolingType.MEAN,
            normalization=True,
            sources=ModelSource(hf="tests/tiny"),
            dim=DIMENSION,
            model_file="model.onnx",
        )
    return "tests/tiny"


def bert(folder: Path) -> str:
    """A random BERT of one layer as a sentence-transformers folder."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    plain = folder / "plain"
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=DIMENSION,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(str(plain))
    BertTokenizerFast(tokenizer_object=tokenizer()).save_pretrained(str(plain))
    transformer = Transformer(str(plain))
    pooling = Pooling(DIMENSION)
    SentenceTransformer(modules=[transformer, pooling], device="cpu").save(str(folder / "whole"))
    return str(folder / "whole")
