"""Layers over a sequence: recurrence, pooling, blocks of transformers, relations of regions."""

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from scipy.special import ndtr

from golden_weights import dense, gru, norm
from layer_checks import check_layer
from zoo.layers import (
    GeneralizedPooling,
    LearnedTokens,
    RegionGraph,
    RegionReasoning,
    SentenceGRU,
    TransformerBlock,
    WordPieces,
)
from zoo.layers.masking import unit_length
from zoo.layers.transformer import map_encoding, sequence_encoding, sinusoidal_encoding

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(4, 6, 5)).astype("float32")
LENGTHS = np.array([6, 3, 1, 4])
MASK = np.arange(6) < LENGTHS[:, None]


def set_official_weights(layer, g, prefix=""):
    reader = [*gru(g, f"{prefix}gru"), *gru(g, f"{prefix}gru", reverse=True)]
    layer.reader.set_weights(reader)
    layer.score.set_weights(dense(g, f"{prefix}linear"))


def test_generalized_pooling_is_a_layer():
    inputs = {"features": FEATURES, "mask": MASK}
    config = {"position_dim": 8, "hidden_dim": 4}
    # half precision moves the scores, which the temperature multiplies by ten
    check_layer(GeneralizedPooling, config, inputs, (4, 5), mixed_atol=0.3)


def test_official_gpo_with_gradients(golden):
    g = golden("gpo")
    features = tf.constant(g["features"])
    mask = np.arange(9) < g["lengths"][:, None]
    layer = GeneralizedPooling()
    layer(features, mask=mask)
    set_official_weights(layer, g)
    with tf.GradientTape() as tape:
        tape.watch(features)
        pooled = layer(features, mask=mask)
        total = tf.reduce_sum(pooled * tf.range(1.0, 13.0))
    np.testing.assert_allclose(pooled, g["pooled"], atol=1e-5)
    weights = layer._weights(np.arange(9)[None], mask)
    np.testing.assert_allclose(weights, g["pool_weights"][..., 0], atol=1e-5)
    np.testing.assert_allclose(tape.gradient(total, features), g["grad_features"], atol=1e-4)
    encoding = sinusoidal_encoding(np.arange(9), 32)
    np.testing.assert_allclose(encoding, g["positional_encoding"], atol=1e-6)


def test_official_vse_infinity_image_encoder(golden):
    """Linear plus two-layer MLP, GPO, unit length: what the builder puts together."""
    g = golden("vse_infty_image_aggr")
    regions = g["regions"]
    mask = np.arange(regions.shape[1]) < g["lengths"][:, None]
    linear = keras.layers.Dense(12)
    first, second = keras.layers.Dense(6), keras.layers.Dense(12)
    normalize = keras.layers.BatchNormalization(epsilon=1e-5)
    pooling = GeneralizedPooling()

    def encode():
        hidden = keras.ops.relu(normalize(first(regions)))
        return unit_length(pooling(linear(regions) + second(hidden), mask=mask))

    encode()
    linear.set_weights(dense(g, "fc"))
    first.set_weights(dense(g, "mlp__layers__0"))
    second.set_weights(dense(g, "mlp__layers__1"))
    normalize.set_weights(norm(g, "mlp__bns__0"))  # the second one is there but not called
    set_official_weights(pooling, g, "gpool__")
    np.testing.assert_allclose(encode(), g["out"], atol=1e-5)


@pytest.mark.filterwarnings("ignore:You are using a softmax")  # of one position: weight one
def test_padding_and_order_change_nothing():
    layer = GeneralizedPooling()
    pooled = layer(FEATURES, mask=MASK)
    garbage = np.where(MASK[..., None], FEATURES, 1e3).astype("float32")
    np.testing.assert_allclose(layer(garbage, mask=MASK), pooled, atol=1e-6)
    order = RNG.permutation(6)
    np.testing.assert_allclose(layer(FEATURES[:, order], mask=MASK[:, order]), pooled, atol=1e-6)
    for i, length in enumerate(LENGTHS):
        np.testing.assert_allclose(layer(FEATURES[i : i + 1, :length])[0], pooled[i], atol=1e-6)


def test_zero_scores_are_the_mean_and_nothing_is_zero():
    layer = GeneralizedPooling()
    layer.build(FEATURES.shape)
    layer.score.set_weights([np.zeros((32, 1))])
    expected = [FEATURES[i, :length].mean(axis=0) for i, length in enumerate(LENGTHS)]
    np.testing.assert_allclose(layer(FEATURES, mask=MASK), expected, atol=1e-6)
    np.testing.assert_array_equal(layer(FEATURES, mask=np.zeros_like(MASK)), np.zeros((4, 5)))


def test_encodings_of_maps_and_sequences():
    encoding = np.asarray(map_encoding(2, 3, 8)).reshape(2, 3, 8)
    np.testing.assert_array_equal(encoding[0, :, :4], np.broadcast_to(encoding[0, 0, :4], (3, 4)))
    np.testing.assert_allclose(encoding[:, 1, 4:], np.asarray(sequence_encoding(3, 4))[[0, 0], 1])
    masked = sequence_encoding(6, 4, MASK)
    np.testing.assert_allclose(masked[1, :3], sequence_encoding(3, 4)[0], atol=1e-6)
    with pytest.raises(ValueError, match="`dim` must be even"):
        sinusoidal_encoding(np.arange(3), 5)
    with pytest.raises(ValueError, match="multiple of 4"):
        map_encoding(2, 2, 6)


WORDS = RNG.normal(size=(4, 6, 5)).astype("float32")


@pytest.mark.parametrize("config", [{"merge": "ave"}, {"bidirectional": False}])
def test_sentence_gru_is_a_layer(config):
    inputs = {"words": WORDS, "mask": MASK}
    check_layer(SentenceGRU, {"dim": 8, **config}, inputs, ((4, 6, 8), (4, 8)))


@pytest.mark.parametrize("merge", ["concat", "ave"])
def test_padded_words_change_nothing(merge):
    layer = SentenceGRU(8, merge=merge)
    states, sentence = layer(WORDS, mask=MASK)
    assert (np.asarray(states)[~MASK] == 0).all()
    garbage = np.where(MASK[..., None], WORDS, 1e3).astype("float32")
    np.testing.assert_allclose(layer(garbage, mask=MASK)[1], sentence, atol=1e-6)
    for i, length in enumerate(LENGTHS):
        alone_states, alone = layer(WORDS[i : i + 1, :length])
        np.testing.assert_allclose(alone[0], sentence[i], atol=1e-6)
        np.testing.assert_allclose(alone_states[0], states[i, :length], atol=1e-6)


def test_both_halves_have_read_the_whole_sentence():
    layer = SentenceGRU(8)
    _, sentence = layer(WORDS, mask=MASK)
    changed = WORDS.copy()
    changed[0, 2] += 1
    difference = np.abs(layer(changed, mask=MASK)[1] - sentence)[0]
    assert (difference > 1e-5).all()


def test_a_sentence_without_words_is_one_word_of_padding():
    layer = SentenceGRU(8)
    states, sentence = layer(WORDS, mask=np.zeros_like(MASK))
    np.testing.assert_allclose(sentence, layer(WORDS[:, :1])[1], atol=1e-6)
    assert (np.asarray(states) == 0).all()


@pytest.mark.parametrize("merge", ["concat", "ave"])
def test_a_sentence_at_its_last_word_has_the_states_of_that_word(merge):
    layer = SentenceGRU(8, merge=merge, at_last_word=True)
    states, sentence = layer(WORDS, mask=MASK)
    rows = np.arange(len(LENGTHS))
    np.testing.assert_array_equal(sentence, np.asarray(states)[rows, LENGTHS - 1])
    np.testing.assert_array_equal(layer(WORDS)[1], np.asarray(layer(WORDS)[0])[:, -1])


REGIONS = RNG.normal(size=(4, 6, 8)).astype("float32")
COUNTS = np.array([6, 3, 2, 4])
THERE = np.arange(6) < COUNTS[:, None]


def unit(values, axis):
    values = np.asarray(values)
    return values / np.linalg.norm(values, axis=axis, keepdims=True)


def official(g):
    layer = RegionReasoning(4)
    layer.build((None, 6, 12))
    for number, graph in enumerate(layer.graphs, start=1):
        for name, part in (("theta", "theta"), ("phi", "phi"), ("g", "g"), ("W__0", "w")):
            getattr(graph, part).set_weights(dense(g, f"Rs_GCN_{number}__{name}"))
        graph.normalize.set_weights(norm(g, f"Rs_GCN_{number}__W__1"))
    layer.reader.gru.set_weights(gru(g, "img_rnn"))
    return layer


@pytest.mark.parametrize("variant", ["coco", "f30k"])
def test_official_vsrn_image_encoder(golden, variant):
    """As released the regions are normalised over regions; ours is the same but for that."""
    g = golden(f"vsrn_image_{variant}")
    layer = official(g)
    kernel, bias = dense(g, "fc")
    regions = g["regions"] @ kernel + bias
    if variant == "coco":
        regions = unit(regions, axis=1)
    related = regions
    for graph in layer.graphs:
        related = graph(related)
    np.testing.assert_allclose(unit(related, axis=1), g["gcn_out"], atol=1e-5)
    image = layer.reader(g["gcn_out"])[1]
    if variant == "f30k":
        scale, shift, mean, variance = norm(g, "bn")
        image = (image - mean) / np.sqrt(variance + 1e-5) * scale + shift
    np.testing.assert_allclose(unit(image, axis=-1), g["out"], atol=1e-5)

    ours, ours_image = layer(regions)
    np.testing.assert_allclose(ours, unit(related, axis=-1), atol=1e-5)
    np.testing.assert_allclose(ours_image, layer.reader(ours)[1], atol=1e-5)


def test_region_graph_is_a_layer():
    check_layer(RegionGraph, {}, {"regions": REGIONS, "mask": THERE}, (4, 6, 8))


def test_region_reasoning_is_a_layer():
    inputs = {"regions": REGIONS, "mask": THERE}
    check_layer(RegionReasoning, {"num_layers": 2}, inputs, ((4, 6, 8), (4, 8)))


def test_graphs_start_as_the_identity():
    layer = RegionReasoning(3)
    regions, _ = layer(REGIONS)
    np.testing.assert_allclose(regions, unit(REGIONS, -1), atol=1e-6)


def started(num_layers):
    layer = RegionReasoning(num_layers)
    layer.build(REGIONS.shape)
    for graph in layer.graphs:
        graph.normalize.gamma.assign(ops.ones_like(graph.normalize.gamma))
    return layer


@pytest.mark.parametrize("training", [False, True])
def test_padded_regions_change_nothing(training):
    layer = started(2)
    regions, image = layer(REGIONS, mask=THERE, training=training)
    assert (np.asarray(regions)[~THERE] == 0).all()
    garbage = np.where(THERE[..., None], REGIONS, 1e2).astype("float32")
    _, of_garbage = layer(garbage, mask=THERE, training=training)
    np.testing.assert_allclose(of_garbage, image, atol=1e-5)


def test_padded_images_are_as_alone():
    layer = started(2)
    regions, image = layer(REGIONS, mask=THERE)
    for i, length in enumerate(COUNTS):
        alone, alone_image = layer(REGIONS[i : i + 1, :length])
        np.testing.assert_allclose(alone[0], regions[i, :length], atol=1e-5)
        np.testing.assert_allclose(alone_image[0], image[i], atol=1e-5)


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
