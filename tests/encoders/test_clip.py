import keras
import keras_hub
import numpy as np
import pytest

import hugging_face
import zoo
from halo_search.errors import InputError
from zoo.encoders import gaussian_towers
from zoo.encoders.clip import clip_blocks, clip_image, clip_text
from zoo.training import dual_encoder_rates

TOKENS, LENGTH, WORDS = 5, 7, 40


def image_tower(**options):
    return clip_image("tiny", image_size=32, **options)


def text_tower(**options):
    return clip_text("tiny", vocabulary_size=WORDS, max_length=LENGTH, **options)


def ids():
    end = WORDS - 1
    return np.array([[3, 5, 7, end, 0, 0, 0], [2, 4, 6, 8, 10, end, end]], "int32")


def weights_file(path):
    """Random weights of a tiny CLIP in PyTorch's layouts under OpenAI's names."""
    rng = np.random.default_rng(0)
    width = 64

    def draw(*shape):
        return rng.normal(0, 0.2, shape).astype("float32")

    openai = {
        "visual.class_embedding": draw(width),
        "visual.conv1.weight": draw(width, 3, 16, 16),
        "visual.positional_embedding": draw(TOKENS, width),
        "visual.ln_pre.weight": 1 + draw(width),
        "visual.ln_pre.bias": draw(width),
        "visual.ln_post.weight": 1 + draw(width),
        "visual.ln_post.bias": draw(width),
        "token_embedding.weight": draw(WORDS, width),
        "positional_embedding": draw(LENGTH, width),
        "ln_final.weight": 1 + draw(width),
        "ln_final.bias": draw(width),
    }
    for tower in ("visual.", ""):
        for number in range(3):
            block = f"{tower}transformer.resblocks.{number}."
            openai |= {
                f"{block}ln_1.weight": 1 + draw(width),
                f"{block}ln_1.bias": draw(width),
                f"{block}attn.in_proj_weight": draw(3 * width, width),
                f"{block}attn.in_proj_bias": draw(3 * width),
                f"{block}attn.out_proj.weight": draw(width, width),
                f"{block}attn.out_proj.bias": draw(width),
                f"{block}ln_2.weight": 1 + draw(width),
                f"{block}ln_2.bias": draw(width),
                f"{block}mlp.c_fc.weight": draw(4 * width, width),
                f"{block}mlp.c_fc.bias": draw(4 * width),
                f"{block}mlp.c_proj.weight": draw(width, 4 * width),
                f"{block}mlp.c_proj.bias": draw(width),
            }
    np.savez(path, **openai)
    return openai


def normal(x, w, name):
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return x * w[f"{name}.weight"] + w[f"{name}.bias"]


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def transformer(x, w, tower, causal, heads=4, blocks=3):
    """CLIP's blocks as OpenAI's model.py states them, in float64 NumPy."""
    length, width = x.shape[1:]
    for number in range(blocks):
        p = f"{tower}transformer.resblocks.{number}."
        qkv = normal(x, w, p + "ln_1") @ w[p + "attn.in_proj_weight"].T + w[p + "attn.in_proj_bias"]
        q, k, v = (
            part.reshape(len(x), length, heads, width // heads).transpose(0, 2, 1, 3)
            for part in np.split(qkv, 3, axis=-1)
        )
        scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(width // heads)
        if causal:
            scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
        mixed = (softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(len(x), length, width)
        x = x + mixed @ w[p + "attn.out_proj.weight"].T + w[p + "attn.out_proj.bias"]
        hidden = normal(x, w, p + "ln_2") @ w[p + "mlp.c_fc.weight"].T + w[p + "mlp.c_fc.bias"]
        hidden = hidden / (1 + np.exp(-1.702 * hidden))
        x = x + hidden @ w[p + "mlp.c_proj.weight"].T + w[p + "mlp.c_proj.bias"]
    return x


def reference(openai, pictures, captions):
    w = {name: array.astype("float64") for name, array in openai.items()}
    mean, deviation = (
        np.array(v)
        for v in ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
    )
    x = (pictures.astype("float64") / 255 - mean) / deviation
    grid = x.reshape(len(x), 2, 16, 2, 16, 3).transpose(0, 1, 3, 5, 2, 4).reshape(len(x), 4, -1)
    patches = grid @ w["visual.conv1.weight"].reshape(64, -1).T
    first = np.broadcast_to(w["visual.class_embedding"], (len(x), 1, 64))
    x = np.concatenate([first, patches], 1) + w["visual.positional_embedding"]
    x = transformer(normal(x, w, "visual.ln_pre"), w, "visual.", causal=False)
    words = w["token_embedding.weight"][captions] + w["positional_embedding"]
    words = transformer(words, w, "", causal=True)
    return x, normal(words, w, "ln_final")  # PCME++: no `ln_post` after the vision transformer


def test_converted_weights_give_what_clip_computes(tmp_path):
    path = tmp_path / "clip.npz"
    openai = weights_file(path)
    pictures = np.random.default_rng(1).uniform(0, 255, (2, 32, 32, 3)).astype("float32")
    image = image_tower(weights=path)(pictures)["features"]
    text = text_tower(weights=path)(ids())["features"]
    expected_image, expected_text = reference(openai, pictures, ids())
    np.testing.assert_allclose(image, expected_image, atol=2e-4)
    np.testing.assert_allclose(text, expected_text, atol=2e-4)


def test_the_variance_branch_is_a_copy_of_the_last_block_with_weights_of_its_own():
    tower = image_tower()
    pictures = np.random.default_rng(0).uniform(0, 255, (2, 32, 32, 3)).astype("float32")
    before = {name: np.array(value) for name, value in tower(pictures).items()}
    assert before["features"].shape == before["variance_features"].shape == (2, TOKENS, 64)
    (last, copy) = clip_blocks(tower)[-1]
    assert copy is tower.get_layer("vision_variance_block")
    copy.set_weights(last.get_weights())
    same = tower(pictures)
    np.testing.assert_allclose(same["variance_features"], same["features"], atol=1e-5)
    np.testing.assert_array_equal(same["features"], before["features"])
    assert abs(np.array(before["variance_features"]) - before["features"]).max() > 0.1
    assert "variance_features" not in image_tower(variance_blocks=0)(pictures)


@pytest.mark.parametrize("make", [image_tower, text_tower])
def test_two_blocks_of_the_variance_part_before_the_last_two(make):
    """PCME++'s table 5, second row: with the weights of the last two blocks the branch computes
    what the mean's does before the text's final norm; with those of the last alone it does not."""
    tower = make(variance_blocks=2)
    vision = make is image_tower
    inputs = np.random.default_rng(0).uniform(0, 255, (2, 32, 32, 3)) if vision else ids()
    copies = [layer for layer in tower.layers if "variance_block" in layer.name]
    blocks = clip_blocks(tower)
    assert [len(block) for block in blocks] == [1, 2, 2]
    assert [block[1] for block in blocks[1:]] == copies
    for block, copy in blocks[1:]:
        copy.set_weights(block.get_weights())

    def branches():
        outputs = tower(inputs)
        variance = outputs["variance_features"]
        if not vision:
            norm = tower.get_layer("text").get_layer("text_layer_norm")
            norm.gamma.assign(np.linspace(1, 2, 64))  # the mean's alone goes through it
            outputs, variance = tower(inputs), norm(variance)
        return np.array(variance), np.array(outputs["features"])

    np.testing.assert_allclose(*branches(), atol=1e-5)
    copies[0].set_weights([weight + 0.1 for weight in copies[0].get_weights()])
    assert np.abs(np.subtract(*branches())).max() > 0.1


def test_padding_after_the_end_changes_nothing():
    encoder = gaussian_towers.pooled_caption_encoder(text_tower(), 8)
    padded = ids()
    other = padded.copy()
    other[0, 4:] = WORDS - 1  # Hugging Face pads with the end token, OpenAI with zeros
    for name, value in encoder(padded).items():
        np.testing.assert_allclose(value, encoder(other)[name], atol=1e-5)
    np.testing.assert_array_equal(text_tower()(padded)["mask"][0], [1, 1, 1, 1, 0, 0, 0])


def test_layer_wise_rates_are_those_of_the_blocks_that_there_are():
    """B.1: the decay is of each transformer block; embeddings and norms are in none of them."""
    tokenizer = zoo.data.WordTokenizer(["bird"], max_words=LENGTH)
    model = zoo.models.pcmepp(
        image_tower(), tokenizer, dim=8, caption_backbone=text_tower(variance_blocks=2)
    )
    for decays_last, depths in ((False, (2, 1, 0)), (True, (3, 2, 1))):
        rates = dual_encoder_rates(model, 0.01, 0.1, 0.5, decay_last_block=decays_last)
        for encoder, rate in ((model.image_encoder, 0.01), (model.caption_encoder, 0.1)):
            backbone = encoder.get_layer("backbone")
            paths = [variable.path for variable in backbone.trainable_variables]
            assert len(paths) == len(set(paths)), "optimizers tell variables apart by their paths"
            expected = {path: rate for path in paths}
            for depth, block in zip(depths, clip_blocks(backbone), strict=True):
                for variable in (v for layer in block for v in layer.trainable_variables):
                    expected[variable.path] = rate * 0.5**depth
            assert {path: rates[path] for path in paths} == pytest.approx(expected)
            outside = {path.split("/")[0] for path in paths if expected[path] == rate}
            assert any("embedding" in name for name in outside)
            assert any("layer_norm" in name for name in outside)


def test_weights_of_keras_hub_and_of_hugging_face_are_read(tmp_path):
    config = {"hidden_dim": 64, "num_layers": 3, "num_heads": 4, "intermediate_dim": 256}
    backbone = keras_hub.models.CLIPBackbone(
        keras_hub.models.CLIPVisionEncoder(
            patch_size=16, image_shape=(32, 32, 3), name="vision", **config
        ),
        keras_hub.models.CLIPTextEncoder(
            vocabulary_size=WORDS,
            embedding_dim=64,
            max_sequence_length=LENGTH,
            name="text",
            **config,
        ),
        projection_dim=16,
    )
    places = next(w for w in backbone.vision_encoder.weights if "position_ids" in w.path)
    places.assign(np.arange(TOKENS)[None])  # zeros in a KerasHub network that read no weights
    weights = tmp_path / "clip.safetensors"
    hugging_face.write_clip_arrays(backbone, weights)
    pictures = np.random.default_rng(1).uniform(0, 255, (2, 32, 32, 3)).astype("float32")
    found = text_tower(weights=weights)(ids())["features"]
    np.testing.assert_allclose(found, backbone.text_encoder({"token_ids": ids()}), atol=1e-5)
    tower, vision = image_tower(weights=weights), backbone.vision_encoder
    whole = keras.Model(vision.inputs, vision.encoder_layers[-1].output)
    expected = whole(tower.get_layer("preprocessing")(pictures))
    np.testing.assert_allclose(tower(pictures)["features"], expected, atol=1e-5)


def test_positions_of_another_image_size_are_interpolated(tmp_path):
    openai = weights_file(tmp_path / "clip.npz")
    tower = clip_image("tiny", image_size=64, weights=tmp_path / "clip.npz")
    positions = (
        tower.get_layer("vision")
        .get_layer("vision_embedding")
        .position_embedding.embeddings.numpy()
    )
    assert positions.shape == (17, 64)
    old = openai["visual.positional_embedding"]
    np.testing.assert_array_equal(positions[0], old[0])
    np.testing.assert_allclose(positions[1:].mean(0), old[1:].mean(0), atol=0.05)


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (
            lambda w: w.pop("visual.ln_post.bias"),
            "1 array of CLIP's vision tower is missing: 'visual.ln_post.bias'",
        ),
        (
            lambda w: w.update({"visual.transformer.resblocks.3.ln_1.bias": np.ones(64)}),
            "expected 3 vision blocks; it has more",
        ),
    ],
)
def test_wrong_weights_say_what_is_wrong(break_it, message, tmp_path):
    path = tmp_path / "clip.npz"
    arrays = weights_file(path)
    break_it(arrays)
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=message):
        image_tower(weights=path)


def test_the_small_transformer_of_redcaps():
    images, words = clip_image("vit_s_16", image_size=32), clip_text("vit_s_16", max_length=8)
    assert images.output["features"].shape == (None, 5, 384)
    assert words.output["features"].shape == (None, 8, 512)
    assert len(clip_blocks(images)) == len(clip_blocks(words)) == 12
