"""A block of CLIP, and learned tokens, against NumPy and KerasHub."""

import keras
import keras_hub
import numpy as np
import pytest
from scipy.special import ndtr

from layer_checks import check_layer
from zoo.layers import LearnedTokens, TransformerBlock, WordPieces

TOKENS = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")


@pytest.mark.parametrize("causal", [False, True])
def test_it_is_kerashubs_block_of_clip(causal):
    vision = keras_hub.models.CLIPVisionEncoder(4, 8, 1, 2, 16, image_shape=(8, 8, 3))
    text = keras_hub.models.CLIPTextEncoder(9, 8, 8, 1, 2, 16)
    other = (text if causal else vision).encoder_layers[0]
    block = TransformerBlock(2, 16, "quick_gelu", causal=causal)
    expected = other(TOKENS)
    block(TOKENS)
    for name in ("layer_norm_1", "attention", "layer_norm_2", "dense_1", "dense_2"):
        getattr(block, name).set_weights(getattr(other, name).get_weights())
    np.testing.assert_allclose(block(TOKENS), expected, atol=1e-6)


def test_gelu_is_exact():
    block = TransformerBlock(2, 8)
    block(TOKENS)
    block.dense_2.kernel.assign(np.eye(8))
    block.dense_1.kernel.assign(np.eye(8))
    block.attention.output_dense.kernel.assign(0 * block.attention.output_dense.kernel)
    read = keras.ops.convert_to_numpy(block.layer_norm_2(TOKENS)).astype(np.float64)
    np.testing.assert_allclose(block(TOKENS), TOKENS + read * ndtr(read), atol=1e-6)


def test_a_causal_block_reads_nothing_that_comes_later():
    block = TransformerBlock(2, 16, causal=True)
    changed = TOKENS.copy()
    changed[:, 3:] += 1
    np.testing.assert_allclose(block(TOKENS)[:, :3], block(changed)[:, :3], atol=1e-6)


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh"])
def test_it_is_kerashubs_block_of_bert(activation):
    gelu = keras.activations.gelu
    approximate = activation == "gelu_tanh"
    other = keras_hub.layers.TransformerEncoder(
        16, 2, activation=lambda x: gelu(x, approximate=approximate), layer_norm_epsilon=1e-12
    )
    block = TransformerBlock(2, 16, activation, 1e-12, post_norm=True)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], bool)
    expected = other(TOKENS, padding_mask=mask)
    block(TOKENS)
    for name, part in (
        ("attention", "self_attention_layer"),
        ("layer_norm_1", "self_attention_layer_norm"),
        ("dense_1", "feedforward_intermediate_dense"),
        ("dense_2", "feedforward_output_dense"),
        ("layer_norm_2", "feedforward_layer_norm"),
    ):
        getattr(block, name).set_weights(getattr(other, f"_{part}").get_weights())
    np.testing.assert_allclose(block(TOKENS, padding_mask=mask), expected, atol=1e-6)
    assert np.abs(block(TOKENS) - expected)[0].max() > 1e-3


@pytest.mark.parametrize("at_end", [False, True])
def test_learned_tokens_stand_where_they_are_told(at_end):
    layer = LearnedTokens(2, at_end=at_end)
    found = keras.ops.convert_to_numpy(layer(TOKENS)) - layer.positions.numpy()
    own, others = (found[:, 5:], found[:, :5]) if at_end else (found[:, :2], found[:, 2:])
    np.testing.assert_allclose(others, TOKENS, atol=1e-6)
    np.testing.assert_allclose(own, np.broadcast_to(layer.tokens.numpy(), (2, 2, 8)), atol=1e-6)


@pytest.mark.parametrize(
    ("cls", "config", "length"),
    [
        (TransformerBlock, {"num_heads": 2, "mlp_dim": 16, "causal": True}, 5),
        (TransformerBlock, {"num_heads": 2, "mlp_dim": 16, "post_norm": True, "dropout": 0.1}, 5),
        (LearnedTokens, {"count": 2}, 7),
        (LearnedTokens, {"count": 0, "at_end": True}, 5),
    ],
)
def test_they_are_layers_as_keras_wants_them(cls, config, length):
    check_layer(cls, config, {"tokens": TOKENS}, (2, length, 8))


def test_pieces_places_and_the_sentence_are_added_and_normalised():
    layer = WordPieces(9, 8, max_length=6)
    ids = np.array([[2, 5, 0, 0], [1, 1, 8, 3]])
    found = layer(ids)
    pieces, places, sentence = (
        np.asarray(one) for one in (layer.pieces, layer.places, layer.sentence)
    )
    total = pieces[ids] + places[:4] + sentence
    total -= total.mean(-1, keepdims=True)
    np.testing.assert_allclose(found, total / total.std(-1, keepdims=True), atol=1e-5)
    model = keras.Model(inputs := keras.Input((4,), dtype="int32"), layer(inputs))
    assert model.output_shape == (None, 4, 8)
    again = WordPieces.from_config(layer.get_config())
    again(ids)
    again.set_weights(layer.get_weights())
    np.testing.assert_array_equal(again(ids), found)
