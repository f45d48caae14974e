"""PyTorch's layouts of weights, part by part, as entries: a variable and where its array is."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import keras
import numpy as np

from zoo.encoders.weight_arrays import COUNTERS, WeightArrays


class Entry(NamedTuple):
    """A variable of Keras, names of the arrays that fill it, and what makes its value of them."""

    variable: Any
    names: tuple[str, ...]
    make: Callable[..., np.ndarray] = np.asarray


def fill(
    arrays: WeightArrays,
    entries: Iterable[Entry],
    network: str,
    ignored: tuple[str, ...] = COUNTERS,
    complete: bool = True,
) -> None:
    """Gives a network its weights, one array after the other. Raises InputError if arrays are
    missing, left over, not finite or of another shape."""
    entries = list(entries)
    arrays.require([name for entry in entries for name in entry.names], network)
    if complete:
        arrays.check_all_used(network, entries, ignored)
    for entry in entries:
        value = entry.make(*(arrays.get(name) for name in entry.names))
        arrays.assign(entry.variable, entry.names[0], value)


def linear(layer: keras.layers.Layer, name: str) -> Iterator[Entry]:
    """Layout of a Dense layer: `nn.Linear`, or a convolution of width one."""
    yield Entry(layer.kernel, (f"{name}.weight",), lambda w: w.reshape(w.shape[:2]).T)
    if layer.use_bias:
        yield Entry(layer.bias, (f"{name}.bias",))


def norm(layer: keras.layers.Layer, name: str) -> Iterator[Entry]:
    """Layout of a LayerNormalization, or of a BatchNormalization with its running statistics."""
    yield Entry(layer.gamma, (f"{name}.weight",))
    yield Entry(layer.beta, (f"{name}.bias",))
    if hasattr(layer, "moving_mean"):
        yield Entry(layer.moving_mean, (f"{name}.running_mean",))
        yield Entry(layer.moving_variance, (f"{name}.running_var",))


def convolution(layer: keras.layers.Layer, name: str) -> Iterator[Entry]:
    """Layout of a Conv2D: out, in / groups, h, w to h, w, in / groups, out."""
    yield Entry(layer.kernel, (f"{name}.weight",), lambda w: w.transpose(2, 3, 1, 0))
    if layer.use_bias:
        yield Entry(layer.bias, (f"{name}.bias",))


def sentence_gru(layer: keras.layers.Layer, name: str) -> Iterator[Entry]:
    """Layout of a `zoo.layers.SentenceGRU`: `nn.GRU` of one layer in one or both directions."""
    if not layer.bidirectional:
        yield from _gru(layer.gru.cell, name, "_l0")
        return
    yield from _gru(layer.gru.forward_layer.cell, name, "_l0")
    yield from _gru(layer.gru.backward_layer.cell, name, "_l0_reverse")


def _gru(cell, name, end):
    """The entries of a PyTorch GRU's direction; `end` is the end of its array names."""

    # PyTorch orders the gates reset, update, new; Keras update, reset, new.
    def gates(stacked):
        reset, update, new = np.split(stacked, 3)
        return np.concatenate([update, reset, new])

    yield Entry(cell.kernel, (f"{name}.weight_ih{end}",), lambda w: gates(w).T)
    yield Entry(cell.recurrent_kernel, (f"{name}.weight_hh{end}",), lambda w: gates(w).T)
    biases = (f"{name}.bias_ih{end}", f"{name}.bias_hh{end}")
    yield Entry(cell.bias, biases, lambda i, h: np.stack([gates(i), gates(h)]))


def local_attention(layer: keras.layers.Layer, name: str) -> Iterator[Entry]:
    """Layout of a `zoo.layers.LocalAttention`: PIE-Net's attention."""
    yield from linear(layer.hidden, f"{name}.w_1")
    yield from linear(layer.score, f"{name}.w_2")


def pie_net(layer: keras.layers.Layer, name: str) -> Iterator[Entry]:
    """Layout of a `zoo.layers.PolysemousEmbedding`: PIE-Net."""
    yield from local_attention(layer.attention, f"{name}.attention")
    yield from linear(layer.branch, f"{name}.fc")
    yield from norm(layer.normalize, f"{name}.layer_norm")


def generalized_pooling(layer: keras.layers.Layer, name: str) -> Iterator[Entry]:
    """Layout of a `zoo.layers.GeneralizedPooling`: VSE∞'s GPO."""
    yield from sentence_gru(layer.reader, f"{name}.gru")
    yield from linear(layer.score, f"{name}.linear")


def transformer_block(block: keras.layers.Layer, name: str) -> Iterator[Entry]:
    """Layout of a block of CLIP, by OpenAI's names."""
    yield from norm(block.layer_norm_1, f"{name}.ln_1")
    yield from joint_attention(block.attention, f"{name}.attn")
    yield from norm(block.layer_norm_2, f"{name}.ln_2")
    yield from linear(block.dense_1, f"{name}.mlp.c_fc")
    yield from linear(block.dense_2, f"{name}.mlp.c_proj")


def joint_attention(attention: keras.layers.Layer, name: str) -> Iterator[Entry]:
    """Layout of `nn.MultiheadAttention`, whose query, key and value are stacked."""
    parts = (attention.query_dense, attention.key_dense, attention.value_dense)
    for place, part in enumerate(parts):
        # (out, in) → (in, heads, per head)
        yield Entry(
            part.kernel,
            (f"{name}.in_proj_weight",),
            lambda w, at=place, shape=part.kernel.shape: np.split(w, 3)[at].T.reshape(shape),
        )
        yield Entry(
            part.bias,
            (f"{name}.in_proj_bias",),
            lambda b, at=place, shape=part.bias.shape: np.split(b, 3)[at].reshape(shape),
        )
    yield from _reshaped(attention.output_dense, f"{name}.out_proj")


def bert(network: keras.Model, name: str) -> Iterator[Entry]:
    """Layout of KerasHub's `BertBackbone` without its pooler, by Hugging Face's names."""
    start = f"{name}.embeddings"
    words, positions = network.get_layer("token_embedding"), network.get_layer("position_embedding")
    yield Entry(words.embeddings, (f"{start}.word_embeddings.weight",))
    yield Entry(positions.position_embeddings, (f"{start}.position_embeddings.weight",))
    segments = network.get_layer("segment_embedding")
    yield Entry(segments.embeddings, (f"{start}.token_type_embeddings.weight",))
    yield from norm(network.get_layer("embeddings_layer_norm"), f"{start}.LayerNorm")
    for layer in network.layers:
        if layer.name.startswith("transformer_layer_"):
            number = layer.name.removeprefix("transformer_layer_")
            yield from _bert_block(layer, f"{name}.encoder.layer.{number}")


def _bert_block(block, name):
    """The entries of one BERT layer in the names of Hugging Face."""
    attention = block._self_attention_layer
    for part in ("query", "key", "value"):
        layer = getattr(attention, f"{part}_dense")
        yield from _reshaped(layer, f"{name}.attention.self.{part}")
    yield from _reshaped(attention.output_dense, f"{name}.attention.output.dense")
    yield from norm(block._self_attention_layer_norm, f"{name}.attention.output.LayerNorm")
    yield from linear(block._feedforward_intermediate_dense, f"{name}.intermediate.dense")
    yield from linear(block._feedforward_output_dense, f"{name}.output.dense")
    yield from norm(block._feedforward_layer_norm, f"{name}.output.LayerNorm")


def _reshaped(layer, name):
    """Layout of a projection from or to heads."""
    kernel, bias = layer.kernel, layer.bias
    yield Entry(kernel, (f"{name}.weight",), lambda w: w.T.reshape(kernel.shape))
    yield Entry(bias, (f"{name}.bias",), lambda b: b.reshape(bias.shape))


def torchvision(network: keras.Model, prefix: str = "") -> Iterator[Entry]:
    """Layout of a `zoo.encoders.resnext`: torchvision's names with `_` for the dots."""
    for layer in network.layers:
        name = prefix + layer.name.replace("_", ".")
        if isinstance(layer, keras.layers.Conv2D):
            yield from convolution(layer, name)
        elif isinstance(layer, keras.layers.BatchNormalization):
            yield from norm(layer, name)


def self_attention(attention: keras.layers.Layer, name: str) -> Iterator[Entry]:
    """Layout of an attention by Hugging Face's names."""
    for letter, part in zip("qkv", ("query", "key", "value"), strict=True):
        yield from _reshaped(getattr(attention, f"{part}_dense"), f"{name}.{letter}_proj")
    yield from _reshaped(attention.output_dense, f"{name}.out_proj")


def hugging_face_block(block: keras.layers.Layer, name: str) -> Iterator[Entry]:
    """Layout of a block of CLIP, by Hugging Face's names."""
    yield from norm(block.layer_norm_1, f"{name}.layer_norm1")
    yield from self_attention(block.attention, f"{name}.self_attn")
    yield from norm(block.layer_norm_2, f"{name}.layer_norm2")
    yield from linear(block.dense_1, f"{name}.mlp.fc1")
    yield from linear(block.dense_2, f"{name}.mlp.fc2")


def open_clip_image(backbone: keras.Model, uncertainty_token: bool) -> Iterator[Entry]:
    """Layout of `zoo.encoders.open_clip_image`, by OpenCLIP's names after `visual.`."""
    of = backbone.get_layer
    yield from convolution(of("vision_patches"), "visual.conv1")
    names = ("visual.class_embedding", "visual.unc_embedding")[: 1 + uncertainty_token]
    yield Entry(of("vision_tokens").tokens, names, _stacked)
    yield Entry(of("vision_tokens").positions, ("visual.positional_embedding",))
    yield from norm(of("vision_first_norm"), "visual.ln_pre")
    yield from _blocks(backbone, "vision", "visual.")
    yield from norm(of("vision_last_norm"), "visual.ln_post")


def open_clip_text(
    backbone: keras.Model, uncertainty_token: bool, prefix: str = ""
) -> Iterator[Entry]:
    """Layout of `zoo.encoders.open_clip_text`, by OpenCLIP's names after `prefix`."""
    of = backbone.get_layer
    yield Entry(of("text_words").embeddings, (f"{prefix}token_embedding.weight",))
    if uncertainty_token:
        names = (f"{prefix}unc_emb", f"{prefix}cls_emb")
        yield Entry(of("text_tokens").tokens, names, _stacked)
    yield Entry(of("text_tokens").positions, (f"{prefix}positional_embedding",))
    yield from _blocks(backbone, "text", prefix)
    yield from norm(of("text_last_norm"), f"{prefix}ln_final")


def _blocks(backbone, tower, prefix):
    """The entries of a tower's transformer blocks, and of those of its variance."""
    for kind, start in (("block", "transformer"), ("variance_block", "uncertainty_transformer")):
        block_prefix = f"{tower}_{kind}_"
        for layer in backbone.layers:
            if layer.name.startswith(block_prefix):
                number = layer.name.removeprefix(block_prefix)
                yield from transformer_block(layer, f"{prefix}{start}.resblocks.{number}")


def _stacked(*arrays):
    """Arrays as rows of one matrix, (arrays, values)."""
    return np.stack([array.ravel() for array in arrays])
