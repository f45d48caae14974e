import gzip
import json
from types import SimpleNamespace

import numpy as np
import pytest

import zoo
from halo_search.errors import InputError
from tiny_hub import FAMILIES, IMAGES, LENGTH, TEXTS, compared, tiny_hub
from zoo.encoders.subwords import HubTokenizer
from zoo.models import hub_models, hubs

pytest.importorskip("keras_hub")


# CLIP and MetaCLIP 2 are read from folders of Hugging Face, there and below.
PARAMS = [
    pytest.param(name, marks=[] if name == "siglip" else pytest.mark.very_slow) for name in FAMILIES
]


@pytest.fixture(scope="module", params=PARAMS)
def family(request, tmp_path_factory):
    backbone, preprocessor = tiny_hub(request.param)
    folder = tmp_path_factory.mktemp(request.param) / "preset"
    backbone.save_to_preset(folder)
    preprocessor.save_to_preset(folder)
    return request.param, backbone, preprocessor, zoo.from_preset(folder)


def test_a_preset_gives_what_keras_hub_gives(family):
    _, backbone, preprocessor, model = family
    images, texts, logits = compared(model, backbone, preprocessor)
    assert np.ptp(logits) > 1  # they differ from pair to pair
    np.testing.assert_allclose(model.encode_images(IMAGES[:1]), images[:1], atol=1e-5)
    np.testing.assert_allclose(model.encode_captions(TEXTS[:1]), texts[:1], atol=1e-5)
    assert model.tokenizer.vocabulary_size() == preprocessor.tokenizer.vocabulary_size()


def test_a_backbone_shares_its_layers():
    backbone, preprocessor = tiny_hub("clip")
    backbone.clip_head.logit_scale.assign(np.log(100.01))  # CLIP's clip, rounded up
    model = zoo.from_preset(backbone, preprocessor=preprocessor)
    assert float(model.similarity.scale) == pytest.approx(100.01, rel=1e-4)
    before = np.asarray(model.encode_images(IMAGES))
    backbone.vision_projection.kernel.assign(-backbone.vision_projection.kernel)
    np.testing.assert_allclose(model.encode_images(IMAGES), -before, atol=1e-6)
    assert isinstance(model.loss, zoo.losses.InfoNCE)
    alone = zoo.from_preset(backbone)
    assert alone.tokenizer is None
    assert alone.encode_captions(np.ones((2, LENGTH), "int32")).shape == (2, 8)
    # CLIP's own pixels: its mean becomes zero, one deviation above it one.
    mean, deviation = np.array(zoo.encoders.clip.MEAN), np.array(zoo.encoders.clip.DEVIATION)
    scaling = alone.image_encoder.get_layer("preprocessing")
    pixels = 255 * np.stack([mean, mean + deviation])[:, None, None].astype("float32")
    np.testing.assert_allclose(scaling(pixels)[:, 0, 0], [[0] * 3, [1] * 3], atol=1e-5)


def test_hugging_face_folders_that_keras_hub_converts(tmp_path):
    from hugging_face import write_metaclip_2

    backbone, preprocessor = tiny_hub("metaclip2")
    write_metaclip_2(backbone, preprocessor, tmp_path)
    model = zoo.from_preset(tmp_path)
    # KerasHub's default are 77 ids, which these few positions do not hold.
    assert model.tokenizer.max_words == LENGTH
    compared(model, backbone, preprocessor)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "blip-3"}))
    with pytest.raises(InputError, match=r"cannot read it:.*blip-3"):
        zoo.from_preset(tmp_path)


def test_what_cannot_be_read_is_said(tmp_path):
    import keras_hub

    (tmp_path / "config.json").write_text(json.dumps({"module": "keras_hub.src.models"}))
    with pytest.raises(InputError, match=f"{tmp_path}: KerasHub cannot read it"):
        zoo.from_preset(tmp_path)
    bert = keras_hub.models.BertBackbone(20, 1, 2, 8, 16, max_sequence_length=5)
    with pytest.raises(InputError, match=r"must be one of CLIPBackbone.*received BertBackbone"):
        zoo.from_preset(bert)
    backbone, preprocessor = tiny_hub("siglip")
    preprocessor.image_converter.pad_to_aspect_ratio = True
    with pytest.raises(InputError, match="pads pictures"):
        zoo.from_preset(backbone, preprocessor=preprocessor)
    with pytest.raises(ValueError, match=r"`cleaning` must be one of.*'soap'"):
        HubTokenizer(preprocessor.tokenizer, 5, (None, 1), cleaning="soap")
    with pytest.raises(ValueError, match="`scale` must be positive; received 0"):
        zoo.similarities.CosineLogit(0)


def test_a_download_is_told_once_before_it_begins(monkeypatch, tmp_path, capsys):
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hubs, "_TOLD", set())
    monkeypatch.setenv("KAGGLEHUB_CACHE", str(tmp_path))
    file = SimpleNamespace(rfilename="model.safetensors", size=792_000_000)
    card = {"license": "mit"}
    facts = SimpleNamespace(siblings=[file], card_data=card)
    monkeypatch.setattr(hub, "try_to_load_from_cache", lambda *_: None)
    monkeypatch.setattr(hub, "model_info", lambda *_, **__: facts)
    for name, size, licence in (
        ("siglip_base_patch16_224", "0.8 GB", "Apache 2.0"),
        ("hf://someone/else", "0.8 GB", "mit"),
    ):
        hubs.tell_download(name)
        hubs.tell_download(name)
        told = capsys.readouterr().err
        assert told.startswith(f"{name}: fetching {size} from ")
        assert told.endswith(f"; licence: {licence}\n")
        assert told.count("\n") == 1
    assert "models--someone--else" in told
    (tmp_path / "models/keras/siglip/keras/siglip_base_patch16_256/1").mkdir(parents=True)
    for here in ("siglip_base_patch16_256", "toy_birds_pfe", str(tmp_path)):
        hubs.tell_download(here)
    assert capsys.readouterr().err == ""


@pytest.mark.very_slow
def test_a_backbone_saved_alone_opens_with_the_tokenizer_of_its_family(tmp_path, monkeypatch):
    """Of files beside it, else KerasHub's standard one, which it says."""
    import keras_hub

    backbone, preprocessor = tiny_hub("clip")
    backbone.save_to_preset(tmp_path)
    with pytest.raises(InputError, match=r"without a tokenizer, and its 523 words are of no"):
        zoo.from_preset(tmp_path)
    key, asked = ("CLIPBackbone", backbone.text_encoder.vocabulary_size), []
    monkeypatch.setitem(hub_models._STANDARD, key, "standard")
    cls = keras_hub.models.CLIPPreprocessor
    monkeypatch.setattr(cls, "from_preset", lambda name: asked.append(name) or preprocessor)
    with pytest.warns(UserWarning, match="saved without a tokenizer; .* standard one, of standard"):
        compared(zoo.from_preset(tmp_path), backbone, preprocessor)
    assert asked == ["standard"]
    lines = ["header", *preprocessor.tokenizer.merges]
    path = tmp_path / "bpe_simple_vocab_16e6.txt.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    ids = zoo.from_preset(tmp_path).tokenize(TEXTS)
    np.testing.assert_array_equal(ids, HubTokenizer.of(preprocessor, LENGTH)(TEXTS))
    assert len(asked) == 1
