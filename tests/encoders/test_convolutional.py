"""Networks over pictures: preprocessing, weights, and forward passes in NumPy."""

import keras
import numpy as np
import pytest
from PIL import Image

from halo_search.errors import InputError
from layer_checks import check_layer
from zoo.encoders import (
    convolutional,
    efficientnet_lite2,
    load_efficientnet_lite_weights,
    mean_and_max,
    resnext,
    side_by_side,
    stage_layers,
)
from zoo.encoders.convolutional import load_torchvision_weights
from zoo.encoders.efficientnet_lite import STAGES
from zoo.encoders.point_towers import resizing_of_tower
from zoo.layers import ImagePreprocessing

PIXELS = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3)).astype("uint8")


@pytest.mark.parametrize("mode", ["tf", "caffe", "torch"])
def test_preprocessing_is_a_layer(mode):
    check_layer(ImagePreprocessing, {"mode": mode}, {"images": PIXELS}, PIXELS.shape)


def test_preprocessing_modes():
    pixel = np.array([[[[255.0, 0.0, 127.5]]]], "float32")
    np.testing.assert_allclose(ImagePreprocessing("tf")(pixel)[0, 0, 0], [1, -1, 0])
    blue_green_red = [127.5 - 103.939, -116.779, 255 - 123.68]
    np.testing.assert_allclose(
        ImagePreprocessing("caffe")(pixel)[0, 0, 0], blue_green_red, rtol=1e-5
    )
    with pytest.raises(ValueError, match=r"`mode`.* received 'rgb'"):
        ImagePreprocessing("rgb")


def test_tiny_is_a_map_of_any_size_and_of_each_image_alone():
    backbone = convolutional("tiny")
    assert backbone.name == "backbone"
    assert backbone.output_shape == (None, 8, 8, 128)
    assert 100_000 < backbone.count_params() < 300_000
    small = convolutional("tiny", image_size=32)
    assert small.output_shape == (None, 4, 4, 128)
    np.testing.assert_allclose(small(PIXELS[:1])[0], small(PIXELS)[0], atol=1e-4)


def test_frozen_batch_norm_uses_its_stored_statistics():
    backbone = convolutional("mobilenet_v2", image_size=32, trainable=False)
    assert backbone.output_shape == (None, 1, 1, 1280)
    assert not backbone.trainable_weights
    before = backbone.get_weights()
    backbone(PIXELS, training=True)
    assert all((a == b).all() for a, b in zip(before, backbone.get_weights(), strict=True))
    np.testing.assert_array_equal(backbone(PIXELS, training=True), backbone(PIXELS))
    backbone.trainable = True
    backbone(PIXELS, training=True)
    assert any((a != b).any() for a, b in zip(before, backbone.get_weights(), strict=True))


def test_weights_by_path_and_saving(tmp_path):
    source = convolutional("tiny", image_size=32)
    path = tmp_path / "tiny.weights.h5"
    source.get_layer("tiny").save_weights(path)
    backbone = convolutional("tiny", image_size=32, weights=path)
    np.testing.assert_allclose(backbone(PIXELS), source(PIXELS), atol=1e-5)
    frozen = convolutional("tiny", image_size=32, weights=str(path), trainable=False)
    frozen.save(tmp_path / "backbone.keras")
    loaded = keras.saving.load_model(tmp_path / "backbone.keras")
    np.testing.assert_allclose(loaded(PIXELS), source(PIXELS), atol=1e-5)
    assert not loaded.trainable_weights


def test_bad_weights_are_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.weights\.h5: no such file.*'tiny'"):
        convolutional("tiny", weights=tmp_path / "nowhere.weights.h5")
    (tmp_path / "a.weights.h5").write_bytes(b"not HDF5")
    with pytest.raises(InputError, match=r"a\.weights\.h5: expected the weights of 'tiny'"):
        convolutional("tiny", weights=tmp_path / "a.weights.h5")
    (tmp_path / "a.npz").write_bytes(b"")
    with pytest.raises(InputError, match=r"a\.npz: expected a \.weights\.h5"):
        convolutional("tiny", weights=tmp_path / "a.npz")
    with pytest.raises(InputError, match="no ImageNet weights"):
        convolutional("tiny", weights="imagenet")
    with pytest.raises(ValueError, match=r"`name` must be one of .*received 'vgg'"):
        convolutional("vgg")


def test_an_unreachable_index_is_one_line(monkeypatch):
    def unreachable(*args, **kwargs):
        raise Exception("URL fetch failure")

    monkeypatch.setattr("keras.src.utils.file_utils.get_file", unreachable)
    said = r"'mobilenet_v2' could not be fetched .*local .*--image-weights FILE"
    with pytest.raises(InputError, match=said):
        convolutional("mobilenet_v2", weights="imagenet")


def test_real_mobilenet_weights(shared_data):
    path = shared_data / "weights" / "mobilenetv2_imagenet_notop.weights.h5"
    if not path.is_file():
        pytest.skip("no MobileNetV2 weights beside this checkout")
    backbone = convolutional("mobilenet_v2", image_size=32, weights=path, trainable=False)
    reference = keras.applications.MobileNetV2(
        weights=None, include_top=False, input_shape=(32, 32, 3)
    )
    reference.load_weights(path)
    pixels = np.random.default_rng(0).uniform(0, 255, (1, 32, 32, 3)).astype("float32")
    np.testing.assert_allclose(backbone(pixels), reference(pixels / 127.5 - 1), atol=1e-4)
    with pytest.raises(InputError, match="expected the weights of 'tiny'"):
        convolutional("tiny", image_size=32, weights=path)


BLOCKS, GROUPS, WIDTH = (2, 1, 1, 1), 4, 2
SIZE = 40


class TorchArrays(dict):
    """A PyTorch state dict that is filled layer by layer, from a seed."""

    def __init__(self, seed=0):
        super().__init__()
        self.rng = np.random.default_rng(seed)

    def convolution(self, name, outputs, inputs, size):
        """A kernel without bias."""
        scale = np.sqrt(2 / (inputs * size * size))
        self[f"{name}.weight"] = self.rng.normal(0, scale, (outputs, inputs, size, size))

    def normalization(self, name, channels):
        """A BatchNorm with its running statistics and its counter."""
        self[f"{name}.weight"] = self.rng.uniform(0.5, 1.5, channels)
        self[f"{name}.bias"] = self.rng.normal(0, 0.3, channels)
        self[f"{name}.running_mean"] = self.rng.normal(0, 0.3, channels)
        self[f"{name}.running_var"] = self.rng.uniform(0.5, 1.5, channels)
        self[f"{name}.num_batches_tracked"] = np.array(7)

    def float32(self):
        """All arrays as a file has them."""
        return {name: np.asarray(array, np.float32) for name, array in self.items()}


def resnext_arrays(seed=0):
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


def normalized(arrays, x, name, epsilon):
    """A BatchNorm in inference, channels first, in float64."""
    weight, bias, mean, variance = (
        arrays[f"{name}.{part}"].astype(np.float64)[:, None, None]
        for part in ("weight", "bias", "running_mean", "running_var")
    )
    return (x - mean) / np.sqrt(variance + epsilon) * weight + bias


def resnext_features(arrays, images):
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
        return normalized(arrays, x, name, epsilon=1e-5)

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
def small():
    return resnext(BLOCKS, GROUPS, WIDTH, SIZE, name="small")


def test_torchvision_weights_give_torchvision_features(small, tmp_path):
    arrays = resnext_arrays()
    path = tmp_path / "resnext.npz"
    np.savez(path, **arrays)
    load_torchvision_weights(small, path)
    images = np.random.default_rng(1).normal(size=(2, SIZE, SIZE, 3)).astype("float32")
    expected = resnext_features(arrays, images.transpose(0, 3, 1, 2).astype(np.float64))
    features = np.asarray(small(images)).transpose(0, 3, 1, 2)
    assert features.shape == expected.shape == (2, 2048, 2, 2)
    np.testing.assert_allclose(features, expected, atol=1e-4 * expected.max())


@pytest.mark.slow
def test_the_backbone_is_resnext_101_32x8d():
    backbone = convolutional("resnext101_32x8d", 64)
    # torchvision counts 88,791,336 with a classifier of 2048 × 1000 + 1000.
    trainable = sum(weight.shape.num_elements() for weight in backbone.trainable_weights)
    assert trainable == 88_791_336 - 2_049_000
    assert backbone.output_shape == (None, 2, 2, 2048)


def blocks():
    number = 0
    for kernel, stride, expansion, channels, count in STAGES:
        for repeat in range(count):
            yield number, kernel, 1 if repeat else stride, expansion, channels
            number += 1


def lite_arrays(seed=0):
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


def lite_features(arrays, x):
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
        return normalized(arrays, x, name, epsilon=1e-3)

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
def lite():
    return efficientnet_lite2(SIZE)


def test_arrays_give_the_forward_pass(lite, tmp_path):
    arrays = lite_arrays()
    np.savez(tmp_path / "lite.npz", **arrays)
    load_efficientnet_lite_weights(lite, tmp_path / "lite.npz")
    images = np.random.default_rng(1).normal(size=(2, SIZE, SIZE, 3)).astype("float32")
    expected = lite_features(arrays, images.transpose(0, 3, 1, 2).astype(np.float64))
    features = np.asarray(lite(images)).transpose(0, 3, 1, 2)
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
    expected = np.concatenate([np.asarray(lite(pictures)) for lite in networks], 1)
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
