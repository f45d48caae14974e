"""ResNeXt against torchvision's forward written out in NumPy, on random weights under its names."""

import numpy as np
import pytest

from torch_arrays import TorchArrays
from zoo.encoders import convolutional, resnext
from zoo.encoders.convolutional import load_torchvision_weights

BLOCKS, GROUPS, WIDTH = (2, 1, 1, 1), 4, 2
SIZE = 40


def state_dict(seed=0):
    """Arrays as `torchvision.models.ResNet(Bottleneck, BLOCKS, groups=4, width_per_group=2)`."""
    arrays = TorchArrays(seed)
    arrays.convolution("conv1", 64, 3, 7)
    arrays.normalization("bn1", 64)
    inputs = 64
    for stage, count in enumerate(BLOCKS):
        inner, outer = GROUPS * WIDTH * 2**stage, 256 * 2**stage
        for index in range(count):
            prefix = f"layer{stage + 1}.{index}"
            arrays.convolution(f"{prefix}.conv1", inner, inputs, 1)
            arrays.convolution(f"{prefix}.conv2", inner, inner // GROUPS, 3)
            arrays.convolution(f"{prefix}.conv3", outer, inner, 1)
            for number, channels in ((1, inner), (2, inner), (3, outer)):
                arrays.normalization(f"{prefix}.bn{number}", channels)
            if not index:
                arrays.convolution(f"{prefix}.downsample.0", outer, inputs, 1)
                arrays.normalization(f"{prefix}.downsample.1", outer)
            inputs = outer
    arrays["fc.weight"], arrays["fc.bias"] = arrays.rng.normal(size=(10, inputs)), np.zeros(10)
    return arrays.float32()


def reference(arrays, images):
    """torchvision's `ResNet._forward_impl` up to `layer4`, channels first, in float64."""

    def convolution(x, name, strides=1, groups=1):
        kernel = arrays[f"{name}.weight"].astype(np.float64)
        size = kernel.shape[-1]
        x = np.pad(x, ((0, 0), (0, 0), (size // 2,) * 2, (size // 2,) * 2))
        windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(2, 3))
        windows = windows[:, :, ::strides, ::strides]
        parts = zip(np.split(windows, groups, 1), np.split(kernel, groups, 0), strict=True)
        return np.concatenate([np.einsum("nihwab,oiab->nohw", w, k) for w, k in parts], axis=1)

    def normalization(x, name):
        weight, bias, mean, variance = (
            arrays[f"{name}.{part}"].astype(np.float64)[:, None, None]
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        return (x - mean) / np.sqrt(variance + 1e-5) * weight + bias

    def relu(x):
        return np.maximum(x, 0)

    x = relu(normalization(convolution(images, "conv1", 2), "bn1"))
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    x = windows[:, :, ::2, ::2].max(axis=(4, 5))
    for stage, count in enumerate(BLOCKS):
        for index in range(count):
            prefix, strides = f"layer{stage + 1}.{index}", 2 if stage and not index else 1
            short = x
            if not index:
                short = convolution(x, f"{prefix}.downsample.0", strides)
                short = normalization(short, f"{prefix}.downsample.1")
            y = relu(normalization(convolution(x, f"{prefix}.conv1"), f"{prefix}.bn1"))
            y = convolution(y, f"{prefix}.conv2", strides, GROUPS)
            y = relu(normalization(y, f"{prefix}.bn2"))
            y = normalization(convolution(y, f"{prefix}.conv3"), f"{prefix}.bn3")
            x = relu(y + short)
    return x


@pytest.fixture(scope="module")
def network():
    return resnext(BLOCKS, GROUPS, WIDTH, SIZE, name="small")


def test_torchvision_weights_give_torchvision_features(network, tmp_path):
    arrays = state_dict()
    path = tmp_path / "resnext.npz"
    np.savez(path, **arrays)
    load_torchvision_weights(network, path)
    images = np.random.default_rng(1).normal(size=(2, SIZE, SIZE, 3)).astype("float32")
    expected = reference(arrays, images.transpose(0, 3, 1, 2).astype(np.float64))
    features = np.asarray(network(images)).transpose(0, 3, 1, 2)
    assert features.shape == expected.shape == (2, 2048, 2, 2)
    np.testing.assert_allclose(features, expected, atol=1e-4 * expected.max())


@pytest.mark.slow
def test_the_backbone_is_resnext_101_32x8d():
    backbone = convolutional("resnext101_32x8d", 64)
    # torchvision counts 88,791,336 with a classifier of 2048 × 1000 + 1000.
    trainable = sum(weight.shape.num_elements() for weight in backbone.trainable_weights)
    assert trainable == 88_791_336 - 2_049_000
    assert backbone.output_shape == (None, 2, 2, 2048)
