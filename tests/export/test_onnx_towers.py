"""Towers for ONNX Runtime: Keras' numbers, tokens' ids, sentences."""

import json

import numpy as np
import pytest
import tensorflow as tf

import zoo
from export import __main__ as command
from export.onnx_towers import export_onnx
from halo_search.errors import InputError
from processes import python
from tiny_sentence import LENGTH, PIECES, random_weights, write_checkpoint
from tiny_towers import encoders
from zoo.data.text.bert_tokenizer import SPECIAL, BertTokenizer
from zoo.data.text.twin import tokenizer_of

pytest.importorskip("tf2onnx")
pytest.importorskip("onnxruntime")


def test_any_batch_gives_keras_numbers_and_the_client_runs(pcme, tmp_path):
    out = export_onnx(pcme.model, tmp_path / "out")
    facts = json.loads((out / "export.json").read_text())
    assert set(facts["largest_errors"]) == {
        f"{side}/{part}" for side in ("images", "captions") for part in ("mean", "log_variance")
    }
    assert max(facts["largest_errors"].values()) <= 1e-4
    assert [facts["towers"][side]["input"][0] for side in ("images", "captions")] == [None, None]
    assert python("client.py", cwd=out).stdout.count("'mean': (1, ") == 2


def test_a_pretrained_sentence_is_exported_with_its_own_gelu(tmp_path):
    """MiniLM's is made of erfc, which ONNX has not: tf2onnx wrote a file that nothing opens."""
    folder = write_checkpoint(tmp_path / "bert", random_weights())
    backbone = zoo.encoders.sentences(folder, LENGTH)
    captions = zoo.encoders.sentence_caption_encoder(backbone, 4)
    model = zoo.models.DualEncoder(
        encoders("point")[0],
        captions,
        zoo.similarities.Cosine(),
        loss=zoo.losses.InfoNCE(),
        tokenizer=BertTokenizer(PIECES, LENGTH),
    )
    out = export_onnx(model, tmp_path / "out")
    facts = json.loads((out / "export.json").read_text())
    assert facts["largest_errors"]["captions/mean"] <= 1e-5


def test_one_size_of_batch_and_images_alone(pcme, tmp_path):
    model = pcme.model
    out = export_onnx(model, tmp_path / "out", image_only=True, batch_size=2)
    facts = json.loads((out / "export.json").read_text())
    assert facts["towers"]["images"]["input"] == [2, *model.image_encoder.input_shape[1:]]
    assert set(facts["towers"]) == {"images"}
    assert max(facts["largest_errors"].values()) <= 1e-4
    assert sorted(path.name for path in out.iterdir()) == [
        "client.py",
        "export.json",
        "images.data",
        "images.onnx",
    ]


def test_what_does_not_fit_is_said_and_leaves_nothing(pcme, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(InputError, match="`batch_size` must be at least 1"):
        export_onnx(pcme.model, out, batch_size=0)
    with pytest.raises(InputError, match="--storage must be float32 with --format onnx"):
        command.main(["toy_birds_pfe", str(out), "--format=onnx", "--storage=float16"])
    assert not list(tmp_path.iterdir())


def test_tokenizers_give_the_same_ids():
    words = zoo.from_preset("toy_birds_pfe").tokenizer
    pieces = BertTokenizer([*SPECIAL, "a", "bird", "##s", "cafe", ",", "red"], max_words=7)
    texts = ["A Red bird's wing", "café, a birds", "snow-white «eagle»", "", "12 ½ birds—two"]
    for ours in (words, pieces):
        theirs = tokenizer_of(ours).encode_batch(texts)
        np.testing.assert_array_equal([one.ids for one in theirs], ours(tf.constant(texts)))
