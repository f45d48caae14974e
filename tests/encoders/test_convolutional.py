import keras
import numpy as np
import pytest

from layer_checks import check_layer
from zoo.encoders import convolutional
from zoo.errors import InputError
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
