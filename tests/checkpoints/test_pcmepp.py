"""PCME++ of Hugging Face against the outputs of its official code."""

import numpy as np
import pytest

import released
import zoo
from zoo.encoders.point_towers import resizing_of_tower


def config(about):
    names = {"embed_dim": "embed_dim", "vision": "vision_cfg", "text": "text_cfg"}
    return {names[key]: about[key] for key in names}


def folder_of(name, tmp_path):
    about, shapes, outputs = released.described(name)
    folder = released.write(tmp_path / name, released.weights(shapes), config(about))
    return folder, about["vision"]["image_size"], outputs


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder, size, outputs = folder_of("pcmepp_tiny", tmp_path_factory.mktemp("hub"))
    return zoo.from_checkpoint(folder), folder, size, outputs


def check(model, size, outputs):
    images, texts = released.pixels(size), outputs["texts"].astype("int32")
    released.check_gaussian(
        model.image_encoder, images, outputs["image_features"], outputs["image_stds"]
    )
    released.check_gaussian(
        model.caption_encoder, texts, outputs["text_features"], outputs["text_stds"]
    )
    assert float(model.similarity.scale) == pytest.approx(float(outputs["negative_scale"][0]))
    assert float(model.similarity.shift) == pytest.approx(float(outputs["shift"][0]))


def test_tiny_is_the_official_model(tiny):
    model, _, size, outputs = tiny
    check(model, size, outputs)


@pytest.mark.very_slow
def test_b_16_is_the_official_model(tmp_path):
    folder, size, outputs = folder_of("pcmepp_vit_b_16", tmp_path)
    check(zoo.from_checkpoint(folder), size, outputs)


def test_similarity_is_the_logit_of_the_paper(tiny):
    model, _, size, outputs = tiny
    images = model.encode_images(released.pixels(size))
    captions = model.encode_captions(outputs["texts"].astype("int32"))
    squared = np.square(outputs["image_features"][:, None] - outputs["text_features"][None]).sum(-1)
    variances = np.exp(outputs["image_stds"]).sum(-1)[:, None] + np.exp(outputs["text_stds"]).sum(
        -1
    )
    expected = outputs["shift"] - outputs["negative_scale"] * (squared + variances)
    np.testing.assert_allclose(model.similarity(images, captions), expected, rtol=1e-4)


def test_a_preset_of_it_gives_the_same(tiny, tmp_path):
    model, _, size, outputs = tiny
    zoo.save_preset(model, tmp_path / "preset")
    again = zoo.from_preset(tmp_path / "preset")
    check(again, size, outputs)
    assert again.uncertainty_measure == "total_variance"


def test_pictures_are_shown_as_the_official_processor_shows_them(tiny):
    assert resizing_of_tower(tiny[0].image_encoder) == {"mode": "crop", "crop_fraction": 1.0}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"vision_cfg": {"attentional_pool": True}}, "`attentional_pool` must be False"),
        ({"vision_cfg": {"patch_size": 32}}, "`patch_size` is 32; the arrays are of 16"),
        ({"text_cfg": {"rotary": 1}}, "`rotary` = 1 is not known"),
    ],
)
def test_another_network_is_refused(tmp_path, change, words):
    about, shapes, _ = released.described("pcmepp_tiny")
    settings = config(about)
    for part, options in change.items():
        settings[part] = {**settings[part], **options}
    folder = released.write(tmp_path / "other", released.weights(shapes), settings)
    with pytest.raises(zoo.errors.InputError, match=words):
        zoo.from_checkpoint(folder)


def test_openai_activation_is_read_from_the_config(tmp_path):
    about, shapes, _ = released.described("pcmepp_tiny")
    settings = {**config(about), "quick_gelu": True}
    model = zoo.from_checkpoint(released.write(tmp_path, released.weights(shapes), settings))
    for encoder, name in ((model.image_encoder, "vision"), (model.caption_encoder, "text")):
        block = encoder.get_layer("backbone").get_layer(f"{name}_variance_block_0")
        assert block.activation == "quick_gelu"
