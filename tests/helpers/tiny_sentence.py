"""A BERT of eight channels with random weights, as Hugging Face keeps one."""

import json

import numpy as np
from safetensors.numpy import save_file
from scipy.special import erf, softmax

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "red", "bird", "##s", "dog", "on"]
WIDTH, HEADS, BLOCKS, INNER, LENGTH = 8, 2, 3, 16, 7


def random_weights(seed=0):
    """Arrays by Hugging Face's names, large enough for GELU's two forms to differ."""
    rng = np.random.default_rng(seed)
    arrays = {}

    def add(name, *shape, around=0.0):
        arrays[name] = (around + 0.7 * rng.normal(size=shape)).astype("float32")

    def add_dense(name, before, after):
        add(f"{name}.weight", after, before)
        add(f"{name}.bias", after)

    def add_norm(name):
        add(f"{name}.weight", WIDTH, around=1.0)
        add(f"{name}.bias", WIDTH)

    add("embeddings.word_embeddings.weight", len(PIECES), WIDTH)
    add("embeddings.position_embeddings.weight", 12, WIDTH)
    add("embeddings.token_type_embeddings.weight", 2, WIDTH)
    add_norm("embeddings.LayerNorm")
    for number in range(BLOCKS):
        block = f"encoder.layer.{number}"
        for part in ("query", "key", "value"):
            add_dense(f"{block}.attention.self.{part}", WIDTH, WIDTH)
        add_dense(f"{block}.attention.output.dense", WIDTH, WIDTH)
        add_norm(f"{block}.attention.output.LayerNorm")
        add_dense(f"{block}.intermediate.dense", WIDTH, INNER)
        add_dense(f"{block}.output.dense", INNER, WIDTH)
        add_norm(f"{block}.output.LayerNorm")
    add_dense("pooler.dense", WIDTH, WIDTH)
    return arrays


def write_checkpoint(folder, weights):
    """Makes `config.json`, `tokenizer.json` and `model.safetensors`; returns the folder."""
    folder.mkdir(exist_ok=True)
    config = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "vocab_size": len(PIECES),
        "hidden_size": WIDTH,
        "num_attention_heads": HEADS,
        "num_hidden_layers": BLOCKS,
        "intermediate_size": INNER,
        "max_position_embeddings": 12,
    }
    (folder / "config.json").write_text(json.dumps(config))
    vocabulary = {piece: number for number, piece in reversed(list(enumerate(PIECES)))}
    tokenizer = {
        "normalizer": {"type": "BertNormalizer", "lowercase": True},
        "model": {"type": "WordPiece", "vocab": vocabulary},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def bert_states(arrays, ids, heads=HEADS, blocks=BLOCKS, prefix=""):
    """`BertModel` in evaluation, with GELU itself, of one caption without padding, in float64."""

    def linear(x, name):
        return x @ arrays[f"{name}.weight"].T + arrays[f"{name}.bias"]

    def norm(x, name):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
        return x * arrays[f"{name}.LayerNorm.weight"] + arrays[f"{name}.LayerNorm.bias"]

    start = f"{prefix}embeddings"
    x = arrays[f"{start}.word_embeddings.weight"][ids].astype(np.float64)
    x = x + arrays[f"{start}.position_embeddings.weight"][: len(ids)]
    x = norm(x + arrays[f"{start}.token_type_embeddings.weight"][0], start)
    for number in range(blocks):
        name = f"{prefix}encoder.layer.{number}"
        q, k, v = (
            linear(x, f"{name}.attention.self.{part}").reshape(len(x), heads, -1).swapaxes(0, 1)
            for part in ("query", "key", "value")
        )
        read = softmax(q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1]), axis=-1) @ v
        read = read.swapaxes(0, 1).reshape(len(x), -1)
        x = norm(x + linear(read, f"{name}.attention.output.dense"), f"{name}.attention.output")
        hidden = linear(x, f"{name}.intermediate.dense")
        hidden = hidden * (1 + erf(hidden / np.sqrt(2))) / 2
        x = norm(x + linear(hidden, f"{name}.output.dense"), f"{name}.output")
    return x
