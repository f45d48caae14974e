"""SGRAF's cross-attention against the official code, and what padding and blocks must not do."""

import keras
import numpy as np
import pytest
from keras import ops

import golden_weights
from zoo import similarities
from zoo.layers import GlobalAttention
from zoo.similarities import cross_attention

LAYERS = {"saf": similarities.SimilarityFiltration, "sgr": similarities.SimilarityReasoning}
RNG = np.random.default_rng(0)
MODULES = pytest.mark.parametrize("module", LAYERS)


def official(arrays, module):
    layer = LAYERS[module](16, 8)
    names = {"local": "sim_tranloc_w", "pooled": "sim_tranglo_w", "score": "sim_eval_w"}
    for own, theirs in names.items():
        getattr(layer, own).set_weights(golden_weights.dense(arrays, theirs))
    if module == "saf":
        part = layer.filtration
        part.gate.set_weights(golden_weights.dense(arrays, "SAF_module__attn_sim_w"))
        part.normalize.set_weights(golden_weights.norm(arrays, "SAF_module__bn"))
    else:
        names = {"query": "graph_query_w", "key": "graph_key_w", "gather": "sim_graph_w"}
        for number, step in enumerate(layer.steps):
            for own, theirs in names.items():
                weights = golden_weights.dense(arrays, f"SGR_module__{number}__{theirs}")
                getattr(step, own).set_weights(weights)
    poolings = []
    for side, shape in (("v", (None, 36, 16)), ("t", (None, 6, 16))):
        pooling = GlobalAttention(normalize=side == "v")
        pooling.build(shape)
        for own, theirs in (("local", "local"), ("pooled", "global"), ("score", "common")):
            name = f"{side}_global_w__embedding_{theirs}"
            getattr(pooling, own).set_weights(golden_weights.dense(arrays, f"{name}__0"))
            if side == "v" and own != "score":
                normalize = getattr(pooling, f"{own}_normalize")
                normalize.set_weights(golden_weights.norm(arrays, f"{name}__1"))
        poolings.append(pooling)
    return layer, poolings


def sequence(tokens, lengths, pooling):
    mask = np.arange(tokens.shape[1]) < np.asarray(lengths)[:, None]
    return {"tokens": tokens, "mask": mask, "pooled": pooling(tokens, mask=mask)}


@MODULES
def test_as_released(golden, module):
    arrays = golden(f"sgraf_{module}")
    layer, (pool_regions, pool_words) = official(arrays, module)
    images = sequence(arrays["regions"], [36] * 3, pool_regions)
    captions = sequence(arrays["words"], arrays["lengths"], pool_words)
    np.testing.assert_allclose(layer(images, captions), arrays["sims"], atol=2e-6)


def random_side(count, length, lengths, dim=6):
    tokens = RNG.normal(size=(count, length, dim)).astype("float32")
    tokens /= np.linalg.norm(tokens, axis=-1, keepdims=True)
    mask = np.arange(length) < np.asarray(lengths)[:, None]
    pooled = RNG.normal(size=(count, dim)).astype("float32")
    return {"tokens": tokens * mask[..., None], "mask": mask, "pooled": pooled}


IMAGES, CAPTIONS = random_side(3, 5, [5, 2, 4]), random_side(4, 7, [7, 1, 3, 5])


def cut(side, index, length):
    return {
        "tokens": side["tokens"][index : index + 1, :length],
        "mask": side["mask"][index : index + 1, :length],
        "pooled": side["pooled"][index : index + 1],
    }


@MODULES
def test_padding_changes_nothing(module):
    layer = LAYERS[module](6, 4)
    whole = layer(IMAGES, CAPTIONS)
    for i, image_length in enumerate((5, 2, 4)):
        for j, caption_length in enumerate((7, 1, 3, 5)):
            alone = layer(cut(IMAGES, i, image_length), cut(CAPTIONS, j, caption_length))
            np.testing.assert_allclose(alone[0, 0], whole[i, j], atol=1e-6)
    filled = {**CAPTIONS, "tokens": np.where(CAPTIONS["mask"][..., None], CAPTIONS["tokens"], 9.0)}
    np.testing.assert_allclose(layer(IMAGES, filled.copy()), whole, atol=1e-6)


@MODULES
@pytest.mark.parametrize("training", [False, True])
def test_blocks_of_captions_are_the_whole(module, training, monkeypatch):
    layer = LAYERS[module](6, 4)
    start = layer.get_weights()
    whole = layer(IMAGES, CAPTIONS, training=training)
    after = layer.get_weights()
    layer.set_weights(start)
    calls = []
    attended = cross_attention.attended_regions
    monkeypatch.setattr(cross_attention, "_BLOCK", 3 * 7 * 6 * 2)
    monkeypatch.setattr(
        cross_attention, "attended_regions", lambda *a: calls.append(1) or attended(*a)
    )
    blocks = layer(IMAGES, CAPTIONS, training=training)
    assert len(calls) == 2
    np.testing.assert_allclose(blocks, whole, atol=1e-6)
    for one, other in zip(layer.get_weights(), after, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


@MODULES
def test_gradients_reach_everything(module):
    import tensorflow as tf

    layer = LAYERS[module](6, 4)
    sides = tf.nest.map_structure(tf.constant, (IMAGES, CAPTIONS))
    watched = [side[key] for side in sides for key in ("tokens", "pooled")]
    weights = [w.value for w in layer.trainable_variables]
    with tf.GradientTape() as tape:
        tape.watch(watched)
        value = tf.reduce_sum(layer(*sides, training=True) * RNG.normal(size=(3, 4)))
    gradients = tape.gradient(value, [*watched, *weights])
    for gradient in gradients:
        assert gradient is not None
        assert np.isfinite(gradient).all()
    assert all(np.abs(gradient).max() > 0 for gradient in gradients[: len(watched)])
    local = next(
        g
        for g, w in zip(gradients[len(watched) :], layer.trainable_variables, strict=True)
        if w is layer.local.kernel
    )
    assert np.abs(local).max() > 0


def test_the_average_of_both(tmp_path):
    parts = [layer(6, 4) for layer in LAYERS.values()]
    both = similarities.AverageSimilarity(parts)
    expected = np.mean([part(IMAGES, CAPTIONS) for part in parts], axis=0)
    np.testing.assert_allclose(both(IMAGES, CAPTIONS), expected, rtol=1e-6)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(both))
    again.set_weights(both.get_weights())
    np.testing.assert_allclose(again(IMAGES, CAPTIONS), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="at least one"):
        similarities.AverageSimilarity([])


def test_what_is_no_token_sequence_is_refused():
    layer = similarities.SimilarityReasoning(6, 4)
    with pytest.raises(ValueError, match="must have 'tokens', 'mask' and 'pooled'; received a set"):
        layer({"elements": IMAGES["tokens"]}, CAPTIONS)
    with pytest.raises(ValueError, match="must have tokens of 6 channels; received 5"):
        layer(random_side(1, 2, [2], dim=5), CAPTIONS)


def test_an_empty_caption_is_finite():
    empty = random_side(2, 3, [0, 2])
    for cls in LAYERS.values():
        assert np.isfinite(ops.convert_to_numpy(cls(6, 4)(IMAGES, empty))).all()
