import numpy as np
import pytest
from keras import ops

from golden_weights import dense, gru, norm
from layer_checks import check_layer
from zoo.layers import RegionGraph, RegionReasoning

RNG = np.random.default_rng(0)
REGIONS = RNG.normal(size=(4, 6, 8)).astype("float32")
LENGTHS = np.array([6, 3, 2, 4])
MASK = np.arange(6) < LENGTHS[:, None]


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
    check_layer(RegionGraph, {}, {"regions": REGIONS, "mask": MASK}, (4, 6, 8))


def test_region_reasoning_is_a_layer():
    inputs = {"regions": REGIONS, "mask": MASK}
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
def test_padding_changes_nothing(training):
    layer = started(2)
    regions, image = layer(REGIONS, mask=MASK, training=training)
    assert (np.asarray(regions)[~MASK] == 0).all()
    garbage = np.where(MASK[..., None], REGIONS, 1e2).astype("float32")
    _, of_garbage = layer(garbage, mask=MASK, training=training)
    np.testing.assert_allclose(of_garbage, image, atol=1e-5)


def test_padded_images_are_as_alone():
    layer = started(2)
    regions, image = layer(REGIONS, mask=MASK)
    for i, length in enumerate(LENGTHS):
        alone, alone_image = layer(REGIONS[i : i + 1, :length])
        np.testing.assert_allclose(alone[0], regions[i, :length], atol=1e-5)
        np.testing.assert_allclose(alone_image[0], image[i], atol=1e-5)
