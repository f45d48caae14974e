"""EfficientNet-Lite2 against its forward pass in NumPy, and against the published weights."""

import numpy as np
import pytest
from PIL import Image

from torch_arrays import TorchArrays
from zoo.encoders import (
    convolutional,
    efficientnet_lite2,
    load_efficientnet_lite_weights,
    mean_and_max,
    side_by_side,
    stage_layers,
)
from zoo.encoders.efficientnet_lite import STAGES
from zoo.encoders.point_towers import resizing_of_tower

SIZE = 40


def blocks():
    number = 0
    for kernel, stride, expansion, channels, count in STAGES:
        for repeat in range(count):
            yield number, kernel, 1 if repeat else stride, expansion, channels
            number += 1


def state_dict(seed=0):
    """Random arrays by the names of EfficientNet-PyTorch."""
    arrays = TorchArrays(seed)
    arrays.convolution("_conv_stem", 32, 3, 3)
    arrays.normalization("_bn0", 32)
    inputs = 32
    for number, kernel, _, expansion, channels in blocks():
        name, inner = f"_blocks.{number}", inputs * expansion
        if expansion > 1:
            arrays.convolution(f"{name}._expand_conv", inner, inputs, 1)
            arrays.normalization(f"{name}._bn0", inner)
        arrays.convolution(f"{name}._depthwise_conv", inner, 1, kernel)
        arrays.normalization(f"{name}._bn1", inner)
        arrays.convolution(f"{name}._project_conv", channels, inner, 1)
        arrays.normalization(f"{name}._bn2", channels)
        inputs = channels
    arrays.convolution("_conv_head", 1280, inputs, 1)
    arrays.normalization("_bn1", 1280)
    arrays["_fc.weight"], arrays["_fc.bias"] = arrays.rng.normal(size=(10, 1280)), np.zeros(10)
    return arrays.float32()


def reference(arrays, x):
    """The forward pass, channels first, in float64."""

    def windows(x, size, stride):  # TensorFlow's "same": what is odd is padded at the end
        pads = []
        for length in x.shape[2:]:
            lacking = max((-(-length // stride) - 1) * stride + size - length, 0)
            pads.append((lacking // 2, lacking - lacking // 2))
        x = np.pad(x, ((0, 0), (0, 0), *pads))
        views = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(2, 3))
        return views[:, :, ::stride, ::stride]

    def convolution(x, name, stride=1):
        kernel = arrays[f"{name}.weight"].astype(np.float64)
        equation = "nihwab,iab->nihw" if kernel.shape[1] == 1 != x.shape[1] else "nihwab,oiab->nohw"
        kernel = kernel[:, 0] if equation.count("o") == 0 else kernel
        return np.einsum(equation, windows(x, kernel.shape[-1], stride), kernel, optimize=True)

    def normalization(x, name):
        weight, bias, mean, variance = (
            arrays[f"{name}.{part}"].astype(np.float64)[:, None, None]
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        return (x - mean) / np.sqrt(variance + 1e-3) * weight + bias

    def rectified(x):
        return np.clip(x, 0, 6)

    x = rectified(normalization(convolution(x, "_conv_stem", 2), "_bn0"))
    for number, _, stride, expansion, channels in blocks():
        name, entered = f"_blocks.{number}", x
        if expansion > 1:
            x = rectified(normalization(convolution(x, f"{name}._expand_conv"), f"{name}._bn0"))
        x = convolution(x, f"{name}._depthwise_conv", stride)
        x = rectified(normalization(x, f"{name}._bn1"))
        x = normalization(convolution(x, f"{name}._project_conv"), f"{name}._bn2")
        if stride == 1 and channels == entered.shape[1]:
            x = x + entered
    return rectified(normalization(convolution(x, "_conv_head"), "_bn1"))


@pytest.fixture(scope="module")
def network():
    return efficientnet_lite2(SIZE)


def test_arrays_give_the_forward_pass(network, tmp_path):
    arrays = state_dict()
    np.savez(tmp_path / "lite.npz", **arrays)
    load_efficientnet_lite_weights(network, tmp_path / "lite.npz")
    images = np.random.default_rng(1).normal(size=(2, SIZE, SIZE, 3)).astype("float32")
    expected = reference(arrays, images.transpose(0, 3, 1, 2).astype(np.float64))
    features = np.asarray(network(images)).transpose(0, 3, 1, 2)
    assert features.shape == expected.shape == (2, 1280, 2, 2)
    np.testing.assert_allclose(features, expected, atol=1e-3)


def test_stages_are_pooled_side_by_side():
    backbone = convolutional("efficientnet_lite2", 64, trainable=False)
    pooled = mean_and_max(backbone, stage_layers())
    widths = (32, 144, 288, 528, 720, 1248, 1248, 1280)
    assert pooled.output_shape == (None, 2 * sum(widths))
    assert resizing_of_tower(pooled) == {}, "the data say how pictures become squares"


def test_networks_side_by_side_see_the_same_pictures():
    networks = [mean_and_max(convolutional("tiny", 32)), mean_and_max(convolutional("tiny", 32))]
    networks[1].trainable = False
    both = side_by_side(*networks)
    pictures = np.random.default_rng(0).uniform(0, 255, (2, 32, 32, 3)).astype("float32")
    expected = np.concatenate([np.asarray(network(pictures)) for network in networks], 1)
    np.testing.assert_allclose(np.asarray(both(pictures)), expected, rtol=1e-6)
    assert not np.allclose(expected[:, :256], expected[:, 256:])
    assert len(both.trainable_variables) == len(networks[0].trainable_variables)
    with pytest.raises(ValueError, match=r"`backbones` must take images of one size"):
        side_by_side(networks[0], mean_and_max(convolutional("tiny", 64)))


def test_published_weights_give_the_published_logits(shared_data):
    weights = shared_data / "weights" / "efficientnet_lite2_imagenet.npz"
    backbone = convolutional("efficientnet_lite2", weights=weights)
    check = np.load(shared_data / "weights" / "efficientnet_lite2_check.npz")
    photos = [
        Image.open(shared_data / "flickr8k" / name).convert("RGB").resize((260, 260), Image.BICUBIC)
        for name in check["names"]
    ]
    pooled = np.asarray(backbone(np.stack(photos))).mean((1, 2))
    arrays = np.load(weights)
    logits = pooled @ arrays["_fc.weight"].T.astype("float32") + arrays["_fc.bias"]
    # The arrays are float16, the check values were made in float32: up to 0.5 % of the largest.
    np.testing.assert_allclose(pooled, check["gap"], atol=0.02)
    np.testing.assert_allclose(logits, check["logits"], atol=0.03)
    assert logits.argmax(1).tolist() == [756, 158, 672, 195]
