"""PCME, PCME++ and ProLIP against the outputs of their official codes."""

import numpy as np
import pytest

import halo_search
import released
import zoo
from zoo.encoders.point_towers import resizing_of_tower


def config(about):
    """Of a folder as the hub has it."""
    if "config" in about or "vision_cfg" in about:
        return about.get("config", about)
    names = {"embed_dim": "embed_dim", "vision": "vision_cfg", "text": "text_cfg"}
    return {names[key]: about[key] for key in names}


def folder_of(name, tmp_path):
    about, shapes, outputs = released.described(name)
    folder = released.write(tmp_path / name, released.weights(shapes), config(about))
    return folder, config(about)["vision_cfg"]["image_size"], outputs


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
    with pytest.raises(halo_search.errors.InputError, match=words):
        zoo.from_checkpoint(folder)


def test_openai_activation_is_read_from_the_config(tmp_path):
    about, shapes, _ = released.described("pcmepp_tiny")
    settings = {**config(about), "quick_gelu": True}
    model = zoo.from_checkpoint(released.write(tmp_path, released.weights(shapes), settings))
    for encoder, name in ((model.image_encoder, "vision"), (model.caption_encoder, "text")):
        block = encoder.get_layer("backbone").get_layer(f"{name}_variance_block_0")
        assert block.activation == "quick_gelu"


@pytest.fixture(scope="module")
def tiny_prolip(tmp_path_factory):
    folder, size, outputs = folder_of("prolip_tiny", tmp_path_factory.mktemp("hub"))
    return zoo.from_checkpoint(folder), folder, size, outputs


def check_prolip(model, size, outputs):
    texts = outputs["texts"].astype("int32")
    released.check_gaussian(
        model.image_encoder, released.pixels(size), outputs["image_mean"], outputs["image_std"]
    )
    released.check_gaussian(model.caption_encoder, texts, outputs["text_mean"], outputs["text_std"])


def test_tiny_prolip_is_the_official_model(tiny_prolip):
    model, _, size, outputs = tiny_prolip
    check_prolip(model, size, outputs)


@pytest.mark.very_slow
@pytest.mark.parametrize(
    ("name", "checked"), [("pcmepp_vit_b_16", check), ("prolip_vit_b_16", check_prolip)]
)
def test_b_16_is_the_official_model(name, checked, tmp_path):
    folder, size, outputs = folder_of(name, tmp_path)
    checked(zoo.from_checkpoint(folder), size, outputs)


@pytest.mark.very_slow
@pytest.mark.parametrize(
    ("name", "dim", "length"), [("prolip_long_vit_b_16", 768, 256), ("prolip_vit_l_16", 1024, 64)]
)
def test_every_array_of_the_others_has_its_place(name, dim, length, tmp_path):
    folder, size, _ = folder_of(name, tmp_path)
    model = zoo.from_checkpoint(folder)
    found = model.caption_encoder.predict(np.ones((1, length), "int32"), verbose=0)
    assert found["mean"].shape == found["log_variance"].shape == (1, dim)
    found = model.image_encoder.predict(released.pixels(size), verbose=0)
    assert np.isfinite(found["log_variance"]).all()


def test_similarity_is_the_logit_of_the_official_loss(tiny_prolip):
    model, _, size, outputs = tiny_prolip
    images = model.encode_images(released.pixels(size))
    captions = model.encode_captions(outputs["texts"].astype("int32"))
    variances = np.exp(outputs["image_std"]).sum(-1)[:, None] + np.exp(outputs["text_std"]).sum(-1)
    products = outputs["image_mean"] @ outputs["text_mean"].T
    expected = outputs["logit_scale"] * (products - variances / 2) + outputs["logit_bias"]
    np.testing.assert_allclose(model.similarity(images, captions), expected, rtol=1e-4)


def test_it_is_trained_further_with_inclusion(tiny_prolip):
    _, folder, size, outputs = tiny_prolip
    model = zoo.from_checkpoint(folder)
    model.compile(optimizer="sgd")
    batch = {
        "images": released.pixels(size),
        "captions": outputs["texts"][:2].astype("int32"),
        "image_labels": np.arange(2),
        "caption_labels": np.arange(2),
    }
    found = model.train_on_batch(batch, return_dict=True)
    assert np.isfinite(found["loss"])
    assert np.isfinite(found["inclusion"])


@pytest.mark.parametrize(
    ("part", "change", "words"),
    [
        ("text_cfg", {"no_causal_mask": False}, "`no_causal_mask` must be True"),
        ("text_cfg", {"context_length": 13}, "`context_length` is 13; the arrays are of 12"),
    ],
)
def test_another_prolip_is_refused(tmp_path, part, change, words):
    about, shapes, _ = released.described("prolip_tiny")
    config = {**about["config"], part: {**about["config"][part], **change}}
    folder = released.write(tmp_path / "other", released.weights(shapes), config)
    with pytest.raises(halo_search.errors.InputError, match=words):
        zoo.from_checkpoint(folder)


def of_sizes(vision, text, patch=14, words=30, length=5, mlp=2.0):
    """Arrays of a ProLIP of one block a side, with widths and a patch of a published one."""
    _, shapes, _ = released.described("prolip_tiny")
    shapes = {name: shape for name, shape in shapes.items() if "resblocks.1" not in name}
    wide = {}
    for name, shape in shapes.items():
        width = vision if name.startswith("visual.") else text
        wide[name] = [{32: width, 96: 3 * width, 128: int(mlp * width)}.get(n, n) for n in shape]
    wide["visual.conv1.weight"] = [vision, 3, patch, patch]
    wide["visual.positional_embedding"] = [2 + 4, vision]
    wide["text.token_embedding.weight"] = [words, text]
    wide["text.positional_embedding"] = [2 + length, text]
    for name in ("visual.proj", "visual.uncertainty_proj.weight", "text.text_projection.weight"):
        wide[name] = [16, wide[name][1]] if name != "visual.proj" else [wide[name][0], 16]
    for name in ("visual.uncertainty_proj", "text.text_projection", "text.text_uncertainty_proj"):
        for key in [key for key in wide if key.startswith(name) and key.endswith("bias")]:
            wide[key] = [16]
    wide["text.text_uncertainty_projection.weight"] = [16, 16]
    return released.weights(wide)


@pytest.mark.parametrize(
    ("name", "vision", "text", "heads"),
    [("SO400M/14", 1152, 1152, (16, 16)), ("H/14", 1280, 1024, (16, 16))],
)
def test_widths_of_the_largest_without_a_config(name, vision, text, heads, tmp_path):
    model = zoo.from_checkpoint(released.write(tmp_path, of_sizes(vision, text)))
    blocks = (
        model.image_encoder.get_layer("backbone").get_layer("vision_block_0"),
        model.caption_encoder.get_layer("backbone").get_layer("text_block_0"),
    )
    assert tuple(block.num_heads for block in blocks) == heads, name
    assert [block.epsilon for block in blocks] == [1e-5, 1e-6]
    assert model.image_encoder.input_shape == (None, 28, 28, 3)
    found = model.encode_captions(np.ones((1, 5), "int32"))
    assert found.mean().shape == (1, 16)


def build(name, tmp_path):
    _, shapes, outputs = released.described(name)
    arrays = released.weights(shapes)
    arrays |= {
        "criterion.negative_scale": np.array([6.5], "float32"),
        "criterion.shift": np.array([5.25], "float32"),
    }
    return zoo.from_checkpoint(released.write(tmp_path / name, arrays)), outputs


@pytest.mark.very_slow
@pytest.mark.parametrize("name", ["pcme_resnet50", "pcme_resnet152"])
def test_it_is_the_official_model(name, tmp_path):
    model, outputs = build(name, tmp_path)
    released.check_gaussian(
        model.image_encoder,
        released.pixels(224),
        outputs["image_features"],
        2 * outputs["image_logsigma"],
    )
    ids = outputs["texts"].astype("int32")
    released.check_gaussian(
        model.caption_encoder, ids, outputs["caption_features"], 2 * outputs["caption_logsigma"]
    )
    # p = sigmoid(2x) as released
    assert float(model.similarity.scale) == 13.0
    assert float(model.similarity.shift) == 10.5
    assert resizing_of_tower(model.image_encoder) == {"mode": "crop", "crop_fraction": 224 / 256}
