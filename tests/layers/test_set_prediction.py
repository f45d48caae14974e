import numpy as np
import pytest
from scipy.special import erf

from golden_weights import dense, norm
from layer_checks import check_layer
from zoo.layers import SetPrediction, SlotAttention
from zoo.layers.transformer import map_encoding, sequence_encoding

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(4, 6, 12)).astype("float32")
MAP = RNG.normal(size=(4, 2, 3, 12)).astype("float32")
POOLED = RNG.normal(size=(4, 16)).astype("float32")
SLOTS = RNG.normal(size=(4, 3, 16)).astype("float32")
LENGTHS = np.array([6, 3, 1, 4])
MASK = np.arange(6) < LENGTHS[:, None]
CONFIG = {"num_iterations": 2, "encode_positions": True}
SHAPES = {"elements": (4, 4, 16), "slots": (4, 4, 16)}


def official(g, **config):
    layer = SetPrediction(4, 4, num_heads=4, head_dim=512, **config)
    layer(g["local"], g["glob"])
    block = "agg_block__layers__0__0__"
    mlp = "agg_block__layers__0__2__"
    layer.slots.assign(g["w__agg_block__latents"])
    attention = layer.attention
    attention.query.set_weights(dense(g, f"{block}fn__to_q"))
    attention.key.set_weights(dense(g, f"{block}fn__to_k"))
    attention.value.set_weights(dense(g, f"{block}fn__to_v"))
    attention.output_projection.set_weights(dense(g, f"{block}fn__to_out__0"))
    attention.normalize_slots.set_weights(norm(g, f"{block}norm"))
    attention.normalize_features.set_weights(norm(g, f"{block}norm_context"))
    attention.mlp_hidden.set_weights(dense(g, f"{mlp}fn__net__0"))
    attention.mlp_output.set_weights(dense(g, f"{mlp}fn__net__3"))
    attention.normalize_mlp.set_weights(norm(g, f"{mlp}norm"))
    layer.normalize_slots.set_weights(norm(g, "agg_block__last_layer__0"))
    layer.normalize_pooled.set_weights(norm(g, "residual_norm"))
    return layer


@pytest.mark.parametrize("modality", ["image", "text"])
def test_official_set_prediction(golden, modality):
    g = golden(f"dive_set_prediction_{modality}")
    layer = official(g, encode_positions=modality == "text")
    outputs = layer(g["local"], g["glob"])
    np.testing.assert_allclose(outputs["elements"], g["out_nomask"], atol=1e-5)
    np.testing.assert_allclose(outputs["slots"], g["slots_nomask"], atol=1e-5)
    if modality == "text":
        np.testing.assert_allclose(sequence_encoding(7, 12)[0], g["pos_encoding"][0], atol=1e-5)

    # With padding: the same as released for the full item, and the item alone for the others.
    masked = layer(g["local"], g["glob"], mask=~g["pad_mask"])["elements"]
    for i, length in enumerate(g["lengths"]):
        alone = layer(g["local"][i : i + 1, :length], g["glob"][i : i + 1])["elements"][0]
        np.testing.assert_allclose(masked[i], alone, atol=1e-5)
        as_released = np.abs(masked[i] - g["out_masked"][i]).max()
        assert (as_released < 1e-5) == (length == 7)


def normalized(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def equations_2_to_5(layer, local, pooled, positions, over_slots=True):
    """DivE's set prediction as the paper prints it, one item at a time, in float64."""
    weight = {
        name: [np.float64(w) for w in getattr(layer.attention, name).get_weights()]
        for name in ("query", "key", "value", "output_projection", "mlp_hidden", "mlp_output")
    }
    sets = []
    for inputs, whole in zip(np.float64(local), np.float64(pooled), strict=True):
        inputs = normalized(inputs)
        keys, values = (inputs + positions) @ weight["key"][0], inputs @ weight["value"][0]
        slots = np.float64(np.asarray(layer.slots))
        for _ in range(layer.attention.num_iterations):
            scores = keys @ (normalized(slots) @ weight["query"][0]).T / np.sqrt(keys.shape[1])
            shares = np.exp(scores - scores.max())
            if over_slots:
                shares /= shares.sum(1, keepdims=True)
            shares /= shares.sum(0, keepdims=True)
            kernel, bias = weight["output_projection"]
            slots = shares.T @ values @ kernel + bias + slots
            (first, first_bias), (second, second_bias) = weight["mlp_hidden"], weight["mlp_output"]
            hidden = normalized(slots) @ first + first_bias
            hidden *= 0.5 * (1 + erf(hidden / np.sqrt(2)))
            slots = hidden @ second + second_bias + slots
        sets.append(normalized(slots) + normalized(whole))
    return np.stack(sets)


@pytest.mark.parametrize("normalize_over", ["slots", "positions"])
@pytest.mark.parametrize(
    ("shape", "head_dim"),
    [((7, 7, 1024), 1024), ((36, 1024), 2048), ((12, 300), 2048)],
    ids=["feature map", "regions", "words"],
)
def test_the_papers_equations_at_the_sizes_of_its_recipes(shape, head_dim, normalize_over):
    """D = 1,024, K = T = 4, one head of D_h = 1,024 for feature maps and 2,048 for the others; the
    official module's outputs above have four heads and sixteen channels."""
    located = shape != (36, 1024)
    layer = SetPrediction(
        encode_positions=located, head_dim=head_dim, normalize_over=normalize_over
    )
    rng = np.random.default_rng(4)
    local = rng.normal(size=(2, *shape)).astype("float32")
    pooled = rng.normal(size=(2, 1024)).astype("float32")
    elements = layer(local, pooled)["elements"]
    positions = 0.0
    if located:
        encoding = map_encoding(*shape) if len(shape) == 3 else sequence_encoding(*shape)
        positions = np.asarray(encoding)[0]
    expected = equations_2_to_5(
        layer, local.reshape(2, -1, shape[-1]), pooled, positions, normalize_over == "slots"
    )
    np.testing.assert_allclose(elements, expected, atol=2e-4)


def test_dropout_is_in_the_attentions_output_and_in_the_mlps_hidden_layer():
    """`--dropout` of DivE's released agg_block/attention.py: `to_out` and after the GELU."""
    for silent in ("mlp_output", "output_projection"):
        layer = SlotAttention(num_iterations=1, dropout=0.5, seed=0)
        still = np.asarray(layer(SLOTS, FEATURES))  # builds
        part = getattr(layer, silent)
        part.set_weights([np.zeros_like(weight) for weight in part.get_weights()])
        still, moved = (np.asarray(layer(SLOTS, FEATURES, training=on)) for on in (False, True))
        added = (moved - SLOTS) / (still - SLOTS)
        if silent == "mlp_output":  # each number of the attention's output is lost or doubled
            assert np.minimum(abs(added), abs(added - 2)).max() < 1e-3
        assert abs(added - 1).max() > 0.5


def test_slot_attention_is_a_layer():
    inputs = {"slots": SLOTS, "features": FEATURES, "mask": MASK}
    config = {"num_iterations": 2, "num_heads": 2}
    check_layer(SlotAttention, config, inputs, (4, 3, 16), mixed_atol=0.3)


def test_set_prediction_of_words_is_a_layer():
    inputs = {"features": FEATURES, "pooled": POOLED, "mask": MASK}
    check_layer(SetPrediction, CONFIG, inputs, SHAPES, mixed_atol=0.3)


@pytest.mark.parametrize("encode_positions", [False, True])
def test_padding_changes_nothing(encode_positions):
    layer = SetPrediction(encode_positions=encode_positions)
    elements = layer(FEATURES, POOLED, mask=MASK)["elements"]
    garbage = np.where(MASK[..., None], FEATURES, 1e3).astype("float32")
    np.testing.assert_allclose(layer(garbage, POOLED, mask=MASK)["elements"], elements, atol=1e-5)
    for i, length in enumerate(LENGTHS):
        alone = layer(FEATURES[i : i + 1, :length], POOLED[i : i + 1])["elements"]
        np.testing.assert_allclose(alone[0], elements[i], atol=1e-5)


def test_a_map_without_positions_is_a_sequence_of_cells():
    layer = SetPrediction()
    of_map = layer(MAP, POOLED, return_attention=True)
    of_cells = layer(MAP.reshape(4, 6, 12), POOLED)
    np.testing.assert_allclose(of_map["elements"], of_cells["elements"], atol=1e-6)
    assert of_map["attention"].shape == (4, 4, 6)


@pytest.mark.filterwarnings("ignore:You are using a softmax")  # of one slot: weight one
def test_slots_share_each_position_and_ignore_padding():
    layer = SlotAttention(num_iterations=1)
    _, attention = layer(SLOTS, FEATURES, mask=MASK, return_attention=True)
    attention = np.asarray(attention)
    np.testing.assert_allclose(attention.sum(-1), 1, atol=1e-5)
    assert (attention[np.broadcast_to(~MASK[:, None, None], attention.shape)] == 0).all()
    # one slot gets all of every position, so its attention is uniform
    _, attention = layer(SLOTS[:, :1], FEATURES, return_attention=True)
    np.testing.assert_allclose(attention, 1 / 6, atol=1e-6)


def test_the_order_of_the_features_does_not_matter_but_that_of_the_slots_does():
    layer = SetPrediction()
    order = RNG.permutation(6)
    expected = layer(FEATURES, POOLED)["elements"]
    np.testing.assert_allclose(layer(FEATURES[:, order], POOLED)["elements"], expected, atol=1e-5)
    layer.slots.assign(layer.slots[::-1])
    np.testing.assert_allclose(layer(FEATURES, POOLED)["elements"], expected[:, ::-1], atol=1e-5)
