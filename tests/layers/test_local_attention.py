import numpy as np
import pytest
from keras import ops

from golden_weights import set_pie_net
from layer_checks import check_layer
from zoo.layers import LocalAttention, PolysemousEmbedding
from zoo.layers.masking import masked_softmax

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(4, 7, 12)).astype("float32")
POOLED = RNG.normal(size=(4, 16)).astype("float32")
MASK = np.arange(7) < np.array([[7], [3], [1], [5]])


def test_local_attention_is_a_layer():
    inputs = {"features": FEATURES, "mask": MASK}
    check_layer(LocalAttention, {"num_embeddings": 3, "hidden_dim": 5}, inputs, (4, 3, 12))


def test_polysemous_embedding_is_a_layer():
    inputs = {"features": FEATURES, "pooled": POOLED, "mask": MASK}
    check_layer(PolysemousEmbedding, {"dim": 16, "num_embeddings": 2}, inputs, (4, 2, 16))


def test_a_map_is_a_sequence_of_cells_and_the_local_part_is_told():
    layer = PolysemousEmbedding(16, 3)
    cells = RNG.normal(size=(4, 2, 3, 12)).astype("float32")
    parts = layer(cells, POOLED, return_attention=True)
    assert parts["attention"].shape == (4, 3, 6)
    np.testing.assert_allclose(parts["elements"], layer(cells.reshape(4, 6, 12), POOLED), atol=1e-6)
    whole = layer.normalize(POOLED[:, None] + parts["slots"])
    np.testing.assert_allclose(parts["elements"], whole, atol=1e-6)


@pytest.mark.parametrize(("positions", "num_embeddings"), [(49, 2), (36, 4)])
def test_pie_net_at_the_sizes_of_its_recipes(positions, num_embeddings):
    """PVSE's equations on a 7 × 7 map and on 36 regions of 2,048 channels, D = 1,024, in float64;
    the official module's outputs below have twelve channels."""
    layer = PolysemousEmbedding(1024, num_embeddings)
    rng = np.random.default_rng(4)
    local = rng.normal(size=(2, positions, 2048)).astype("float32")
    pooled = rng.normal(size=(2, 1024)).astype("float32")
    elements = layer(local, pooled)
    x = np.float64(local)
    (first,), (second,) = layer.attention.hidden.get_weights(), layer.attention.score.get_weights()
    assert first.shape == (2048, 1024)
    shares = np.exp(np.tanh(x @ first) @ second)
    shares /= shares.sum(1, keepdims=True)
    kernel, bias = layer.branch.get_weights()
    branch = shares.transpose(0, 2, 1) @ x @ kernel + bias
    whole = pooled[:, None] + 1 / (1 + np.exp(-branch))
    whole = whole - whole.mean(-1, keepdims=True)
    whole /= np.sqrt((whole**2).mean(-1, keepdims=True) + layer.normalize.epsilon)
    np.testing.assert_allclose(elements, whole, atol=1e-4)


def test_official_pie_net(golden):
    g = golden("pvse_pienet")
    layer = PolysemousEmbedding(16, num_embeddings=3, hidden_dim=6)
    mask = ~g["pad_mask"]
    layer(g["local"], g["glob"], mask=mask)
    set_pie_net(layer, g)
    _, attention = layer.attention(g["local"], mask=mask, return_attention=True)
    np.testing.assert_allclose(ops.swapaxes(attention, 1, 2), g["attention"], atol=1e-6)
    np.testing.assert_allclose(layer(g["local"], g["glob"], mask=mask), g["out"], atol=1e-5)
    parts = layer(g["local"], g["glob"], mask=mask, return_attention=True)
    np.testing.assert_allclose(parts["slots"], g["residual"], atol=1e-5)


@pytest.mark.filterwarnings("ignore:You are using a softmax")  # of one position: weight one
@pytest.mark.parametrize("layer", [LocalAttention(2), PolysemousEmbedding(16, 2)])
def test_padding_changes_nothing(layer):
    pooled = () if isinstance(layer, LocalAttention) else (POOLED,)
    padded = layer(FEATURES, *pooled, mask=MASK)
    garbage = np.where(MASK[..., None], FEATURES, 1e3).astype("float32")
    np.testing.assert_allclose(layer(garbage, *pooled, mask=MASK), padded, atol=1e-5)
    for i, length in enumerate(MASK.sum(1)):
        alone = layer(FEATURES[i : i + 1, :length], *(p[i : i + 1] for p in pooled))
        np.testing.assert_allclose(alone[0], padded[i], atol=1e-5)


def test_softmax_of_nothing_is_zero():
    scores = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], "float32")
    weights = masked_softmax(scores, np.array([[True, True, False], [False] * 3]))
    expected = np.exp([1.0, 2.0]) / np.exp([1.0, 2.0]).sum()
    np.testing.assert_allclose(weights, [[*expected, 0.0], [0.0, 0.0, 0.0]], rtol=1e-6)
