"""SGRAF, VSE∞, VSE++, VSRN and PVSE against the outputs of their official codes."""

import json

import numpy as np
import pytest
from scipy.special import softmax

import released
import zoo
from halo_search.errors import InputError
from tiny_sentence import bert_states
from zoo.encoders import weight_layouts
from zoo.encoders.convolutional import torchvision_backbone


def stored(golden, name, prefix):
    weights = golden(name)
    return {
        prefix + key.removeprefix("w__").replace("__", "."): value
        for key, value in weights.items()
        if key.startswith("w__")
    }


def text_of_gru(words, word_dim, dim, name="txt_enc.rnn", both=False):
    ends = ("", "_reverse") if both else ("",)
    shapes = {"txt_enc.embed.weight": (words, word_dim)}
    for end in ends:
        shapes |= {
            f"{name}.weight_ih_l0{end}": (3 * dim, word_dim),
            f"{name}.weight_hh_l0{end}": (3 * dim, dim),
            f"{name}.bias_ih_l0{end}": (3 * dim,),
            f"{name}.bias_hh_l0{end}": (3 * dim,),
        }
    return released.weights(shapes)


def padded(ids, lengths, length=None):
    rows = np.zeros((len(ids), length or max(lengths) + 2), "int32")
    for row, one, count in zip(rows, ids, lengths, strict=True):
        row[:count] = one[:count]
    return rows


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@pytest.mark.parametrize("module", ["saf", "sgr"])
def test_sgraf_is_the_official_similarity(golden, module, tmp_path):
    g = golden(f"sgraf_{module}")
    arrays = stored(golden, f"sgraf_{module}", "sim_enc.")
    arrays |= released.weights({"img_enc.fc.weight": (16, 10), "img_enc.fc.bias": (16,)})
    arrays |= text_of_gru(11, 6, 16, "txt_enc.cap_rnn", both=True)
    folder = released.write(tmp_path / module, arrays)
    assert zoo.checkpoints.family_of(folder) == "sgraf"
    model = zoo.from_checkpoint(folder)
    assert model.name == module
    sides = {}
    for name, encoder, tokens, mask in (
        ("images", model.image_encoder, g["regions"], np.ones((3, 36), bool)),
        ("captions", model.caption_encoder, g["words"], np.arange(6) < g["lengths"][:, None]),
    ):
        tokens = np.where(mask[..., None], tokens, 0).astype("float32")
        pooled = encoder.get_layer("pooling")(tokens, mask=mask)
        sides[name] = {"tokens": tokens, "mask": mask, "pooled": np.asarray(pooled)}
    np.testing.assert_allclose(model.similarity(**sides), g["sims"], atol=1e-5)


def test_sgrafs_towers_are_linear_maps_and_mean_states(tmp_path, golden):
    arrays = stored(golden, "sgraf_saf", "sim_enc.")
    arrays |= released.weights({"img_enc.fc.weight": (16, 10), "img_enc.fc.bias": (16,)})
    arrays |= text_of_gru(11, 6, 16, "txt_enc.cap_rnn", both=True)
    model = zoo.from_checkpoint(released.write(tmp_path, arrays))
    regions = np.random.default_rng(0).normal(size=(2, 36, 10)).astype("float32")
    found = model.image_encoder(regions)["tokens"]
    expected = unit(regions @ arrays["img_enc.fc.weight"].T + arrays["img_enc.fc.bias"])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    ids = padded(np.array([[1, 5, 7, 2]]), [4])
    tokens = np.asarray(model.caption_encoder(ids)["tokens"])[0, :4]
    words = arrays["txt_enc.embed.weight"][ids[0, :4]]
    ahead = gru_states(arrays, words, "txt_enc.cap_rnn", "_l0")
    back = gru_states(arrays, words[::-1], "txt_enc.cap_rnn", "_l0_reverse")[::-1]
    np.testing.assert_allclose(tokens, unit((ahead + back) / 2), atol=1e-5)


def gru_states(arrays, words, name, end):
    state, states = np.zeros(arrays[f"{name}.weight_hh{end}"].shape[1]), []
    for word in words:
        read = arrays[f"{name}.weight_ih{end}"] @ word + arrays[f"{name}.bias_ih{end}"]
        kept = arrays[f"{name}.weight_hh{end}"] @ state + arrays[f"{name}.bias_hh{end}"]
        (r, z, n), (hr, hz, hn) = np.split(read, 3), np.split(kept, 3)
        reset, update = 1 / (1 + np.exp(-(r + hr))), 1 / (1 + np.exp(-(z + hz)))
        state = (1 - update) * np.tanh(n + reset * hn) + update * state
        states.append(state)
    return np.stack(states)


def test_vsepps_captions_are_the_official_ones(golden, tmp_path):
    g = golden("vsepp_text_gru")
    arrays = stored(golden, "vsepp_text_gru", "txt_enc.")
    arrays |= released.weights({"img_enc.fc.weight": (12, 10), "img_enc.fc.bias": (12,)})
    folder = released.write(tmp_path, arrays)
    assert zoo.checkpoints.family_of(folder) == "vsepp"
    model = zoo.from_checkpoint(folder)
    found = model.caption_encoder(padded(g["ids"], g["lengths"]))["mean"]
    np.testing.assert_allclose(found, g["out"], atol=1e-5)
    features = unit(np.random.default_rng(0).normal(size=(3, 10))).astype("float32")
    expected = unit(features @ arrays["img_enc.fc.weight"].T + arrays["img_enc.fc.bias"])
    np.testing.assert_allclose(model.image_encoder(features)["mean"], expected, atol=1e-5)


@pytest.mark.parametrize("variant", ["coco", "f30k"])
def test_vsrn_is_the_official_model(golden, variant, tmp_path):
    g, words = golden(f"vsrn_image_{variant}"), golden("vsepp_text_gru")
    arrays = stored(golden, f"vsrn_image_{variant}", "img_enc.")
    arrays |= stored(golden, "vsepp_text_gru", "txt_enc.")
    folder = released.write(tmp_path / variant, arrays)
    assert zoo.checkpoints.family_of(folder) == "vsrn"
    model = zoo.from_checkpoint(folder)
    np.testing.assert_allclose(model.encode_images(g["regions"]), g["out"], atol=1e-5)
    ids = padded(words["ids"], words["lengths"])
    np.testing.assert_allclose(model.encode_captions(ids), words["out"], atol=1e-5)
    zoo.save_preset(model, tmp_path / "preset")
    again = zoo.from_preset(tmp_path / "preset")
    np.testing.assert_allclose(again.encode_images(g["regions"]), g["out"], atol=1e-5)


def tiny_bert(words=20, width=16, blocks=2):
    start, name = "txt_enc.bert.embeddings", "txt_enc.bert.encoder.layer"
    shapes = {
        f"{start}.word_embeddings.weight": (words, width),
        f"{start}.position_embeddings.weight": (512, width),
        f"{start}.token_type_embeddings.weight": (2, width),
        f"{start}.LayerNorm.weight": (width,),
        f"{start}.LayerNorm.bias": (width,),
        "txt_enc.bert.pooler.dense.weight": (width, width),
        "txt_enc.bert.pooler.dense.bias": (width,),
    }
    for number in range(blocks):
        for part, rows, columns in (
            *((f"attention.self.{part}", width, width) for part in ("query", "key", "value")),
            ("attention.output.dense", width, width),
            ("intermediate.dense", 32, width),
            ("output.dense", width, 32),
        ):
            shapes[f"{name}.{number}.{part}.weight"] = (rows, columns)
            shapes[f"{name}.{number}.{part}.bias"] = (rows,)
        for part in ("attention.output", "output"):
            shapes[f"{name}.{number}.{part}.LayerNorm.weight"] = (width,)
            shapes[f"{name}.{number}.{part}.LayerNorm.bias"] = (width,)
    return released.weights(shapes)


def vse_infinity(golden, tmp_path):
    arrays = stored(golden, "vse_infty_image_aggr", "img_enc.")
    arrays |= tiny_bert()
    arrays |= released.weights({"txt_enc.linear.weight": (12, 16), "txt_enc.linear.bias": (12,)})
    pool = {name: one for name, one in arrays.items() if name.startswith("img_enc.gpool.")}
    arrays |= {name.replace("img_enc", "txt_enc"): one for name, one in pool.items()}
    folder = released.write(tmp_path / "vse", arrays, {"num_attention_heads": 4})
    assert zoo.checkpoints.family_of(folder) == "vse_infinity"
    return zoo.from_checkpoint(folder), arrays


def test_vse_infinity_is_the_official_aggregator_and_bert(golden, tmp_path):
    g = golden("vse_infty_image_aggr")
    model, arrays = vse_infinity(golden, tmp_path)
    mask = np.arange(g["regions"].shape[1]) < g["lengths"][:, None]
    regions = np.where(mask[..., None], g["regions"], 0)
    ids = padded([[2, 7, 9, 4, 11, 3]], [6], 64)
    zoo.save_preset(model, tmp_path / "preset")
    for one in (model, zoo.from_preset(tmp_path / "preset")):
        np.testing.assert_allclose(one.encode_images(regions), g["out"], atol=1e-5)
        found = one.caption_encoder.get_layer("backbone")(ids)["features"]
        expected = bert_states(arrays, ids[0, :6], 4, 2, "txt_enc.bert.")
        np.testing.assert_allclose(found[0, :6], expected, atol=1e-5)
        # The same pooling as of the images' golden output.
        local = expected @ arrays["txt_enc.linear.weight"].T + arrays["txt_enc.linear.bias"]
        pooling = one.caption_encoder.get_layer("head").mean_pooling
        pooled = pooling(local[None].astype("float32"))
        np.testing.assert_allclose(one.encode_captions(ids), unit(np.asarray(pooled)), atol=1e-5)


def resnet_50(prefix):
    """The arrays of torchvision's ResNet-50 by the rule."""
    network = torchvision_backbone("resnet50", 64).get_layer("resnet50")
    shapes = {}
    for entry in weight_layouts.torchvision(network, prefix):
        shape = tuple(entry.variable.shape)
        if len(shape) == 4:
            shape = tuple(shape[axis] for axis in (3, 2, 0, 1))
        shapes[entry.names[0]] = shape
    return released.weights(shapes)


def pie_net(arrays, name, pooled, local):
    hidden = np.tanh(local @ arrays[f"{name}.attention.w_1.weight"].T)
    attention = softmax(hidden @ arrays[f"{name}.attention.w_2.weight"].T, axis=0)
    read = attention.T @ local @ arrays[f"{name}.fc.weight"].T + arrays[f"{name}.fc.bias"]
    x = pooled + 1 / (1 + np.exp(-read))
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    x = x * arrays[f"{name}.layer_norm.weight"] + arrays[f"{name}.layer_norm.bias"]
    return unit(x)


@pytest.mark.very_slow
def test_pvse_is_its_formula_over_torchvisions_resnet(tmp_path):
    arrays = resnet_50("img_enc.cnn.") | text_of_gru(11, 6, 4, both=True)
    shapes = {"img_enc.fc.weight": (8, 2048), "img_enc.fc.bias": (8,)}
    for side, width, hidden in (("img_enc", 2048, 1024), ("txt_enc", 6, 3)):
        shapes |= {
            f"{side}.pie_net.attention.w_1.weight": (hidden, width),
            f"{side}.pie_net.attention.w_2.weight": (2, hidden),
            f"{side}.pie_net.fc.weight": (8, width),
            f"{side}.pie_net.fc.bias": (8,),
            f"{side}.pie_net.layer_norm.weight": (8,),
            f"{side}.pie_net.layer_norm.bias": (8,),
        }
    arrays |= released.weights(shapes)
    folder = released.write(tmp_path, arrays)
    assert zoo.checkpoints.family_of(folder) == "pvse"
    model = zoo.from_checkpoint(folder)

    images = released.pixels(224)
    maps = np.asarray(model.image_encoder.get_layer("backbone")(images)).reshape(2, 49, 2048)
    pooled = maps.mean(1) @ arrays["img_enc.fc.weight"].T + arrays["img_enc.fc.bias"]
    expected = [pie_net(arrays, "img_enc.pie_net", *one) for one in zip(pooled, maps, strict=True)]
    np.testing.assert_allclose(model.encode_images(images), expected, atol=1e-4)

    ids = padded([[1, 5, 7, 2]], [4])
    words = arrays["txt_enc.embed.weight"][ids[0, :4]]
    ahead = gru_states(arrays, words, "txt_enc.rnn", "_l0")[-1]
    back = gru_states(arrays, words[-1:], "txt_enc.rnn", "_l0_reverse")[-1]
    sentence = np.concatenate([ahead, back])
    expected = pie_net(arrays, "txt_enc.pie_net", sentence, words)
    np.testing.assert_allclose(model.encode_captions(ids)[0], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "shape", "words"),
    [
        ("img_enc.cnn.features.module.0.weight", (64, 3, 3, 3), "must be a ResNet; the zoo has no"),
        ("img_enc.cnn.module.layer1.0.conv1.weight", (64, 64, 1, 1), "third stage has 0 blocks"),
    ],
)
def test_networks_that_are_not_hosted_are_refused_by_name(tmp_path, name, shape, words):
    arrays = text_of_gru(11, 6, 8)
    arrays |= released.weights({"img_enc.fc.weight": (8, 16), "img_enc.fc.bias": (8,), name: shape})
    with pytest.raises(InputError, match=words):
        zoo.from_checkpoint(released.write(tmp_path, arrays))


def test_a_vocabulary_makes_a_model_of_strings(tmp_path, golden):
    arrays = stored(golden, "vsepp_text_gru", "txt_enc.")
    arrays |= released.weights({"img_enc.fc.weight": (12, 10), "img_enc.fc.bias": (12,)})
    folder = released.write(tmp_path / "vsepp", arrays)
    words = ["<pad>", "<start>", "<end>", "<unk>", "a", "bird", ".", "red", "and", "on", "dog"]
    ids = {word: place for place, word in enumerate(words)}
    (folder / "coco_precomp_vocab.json").write_text(json.dumps({"word2idx": ids}))
    model = zoo.from_checkpoint(folder)
    found = model.encode_captions(["A red bird."])
    by_ids = zoo.from_checkpoint(folder / "model.safetensors")
    expected = by_ids.encode_captions(np.array([[1, 4, 7, 5, 6, 2]], "int32"))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    zoo.save_preset(model, tmp_path / "preset")
    again = zoo.from_preset(tmp_path / "preset").encode_captions(["A red bird."])
    np.testing.assert_allclose(again, expected, atol=1e-6)
