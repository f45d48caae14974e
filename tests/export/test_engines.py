"""Towers for ONNX Runtime, LiteRT and OpenVINO: Keras' numbers, tokens' ids, sentences."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import zoo
from export.engines import export_engine
from tiny_sentence import LENGTH, PIECES, random_weights, write_checkpoint
from tiny_towers import encoders
from zoo.data.text.bert_tokenizer import SPECIAL, BertTokenizer
from zoo.data.text.twin import tokenizer_of
from zoo.errors import InputError

pytest.importorskip("tf2onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("ai_edge_litert")
pytest.importorskip("openvino")


def client(folder):
    return subprocess.run(
        [sys.executable, "client.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


# OpenVINO compiles the sentences' loop for a minute; of images it is asked below.
@pytest.mark.parametrize(
    "format", ["onnx", "litert", pytest.param("openvino", marks=pytest.mark.very_slow)]
)
def test_any_batch_gives_keras_numbers_and_the_client_runs(pcme, format, tmp_path):
    out = export_engine(pcme.model, tmp_path / "out", format)
    facts = json.loads((out / "export.json").read_text())
    assert set(facts["largest_errors"]) == {
        f"{side}/{part}" for side in ("images", "captions") for part in ("mean", "log_variance")
    }
    assert max(facts["largest_errors"].values()) <= 1e-4
    assert facts["towers"]["images"]["input"][0] is None
    rows = facts["towers"]["captions"]["input"][0]
    assert rows == (1 if format == "litert" else None)  # whose loops need a known size
    done = client(out)
    assert done.stdout.count("'mean': (1, ") == 2, done.stderr[-2000:]
    if format == "litert":
        (out / "client.py").open("a").write("tower('captions')(np.zeros((2, 3), 'int32'))\n")
        assert "captions.tflite takes 1 at once; received 2" in client(out).stderr


@pytest.mark.parametrize(
    "format",
    ["onnx", *(pytest.param(name, marks=pytest.mark.very_slow) for name in ("litert", "openvino"))],
)
def test_a_pretrained_sentence_is_exported_with_its_own_gelu(format, tmp_path):
    """MiniLM's is made of erfc, which ONNX has not: tf2onnx wrote a file that nothing opens."""
    folder = write_checkpoint(tmp_path / "bert", random_weights())
    captions = zoo.encoders.sentence_encoder(folder, 4, LENGTH)
    model = zoo.models.DualEncoder(
        encoders("point")[0],
        captions,
        zoo.similarities.Cosine(),
        loss=zoo.losses.InfoNCE(),
        tokenizer=BertTokenizer(PIECES, LENGTH),
    )
    out = export_engine(model, tmp_path / "out", format)
    facts = json.loads((out / "export.json").read_text())
    assert facts["largest_errors"]["captions/mean"] <= 1e-5


@pytest.mark.parametrize(
    ("format", "files"),
    [
        ("onnx", ["images.onnx"]),
        # Read and compiled for ten seconds.
        pytest.param("openvino", ["images.bin", "images.xml"], marks=pytest.mark.very_slow),
    ],
)
def test_one_size_of_batch_and_images_alone(pcme, format, files, tmp_path):
    model = pcme.model
    out = export_engine(model, tmp_path / "out", format, image_only=True, batch_size=2)
    facts = json.loads((out / "export.json").read_text())
    assert facts["towers"]["images"]["input"] == [2, *model.image_encoder.input_shape[1:]]
    assert set(facts["towers"]) == {"images"}
    assert max(facts["largest_errors"].values()) <= 1e-4
    assert sorted(path.name for path in out.iterdir()) == ["client.py", "export.json", *files]


@pytest.fixture(scope="module")
def whole(pcme, tmp_path_factory):
    out = tmp_path_factory.mktemp("litert") / "whole"
    return export_engine(pcme.model, out, "litert", image_only=True)


@pytest.mark.parametrize(
    ("storage", "most"),
    [("float16", 0.05), pytest.param("dynamic_range", 0.2, marks=pytest.mark.very_slow)],
)
def test_smaller_weights_of_litert_are_finite_and_near(pcme, whole, storage, most, tmp_path):
    # Three captions, one of them empty: what masks and what divides fit into 16 bits.
    small = export_engine(pcme.model, tmp_path / "small", "litert", storage=storage, batch_size=3)
    facts = json.loads((small / "export.json").read_text())
    assert max(facts["largest_errors"].values()) < most
    sizes = [(folder / "images.tflite").stat().st_size for folder in (whole, small)]
    assert sizes[1] < 0.7 * sizes[0]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"format": "torch"}, "`format` must be one of"),
        ({"format": "onnx", "storage": "float16"}, "--storage must be one of"),
        ({"format": "litert", "storage": "bfloat16"}, "--storage must be one of"),
        ({"format": "onnx", "batch_size": 0}, "`batch_size` must be at least 1"),
    ],
)
def test_what_does_not_fit_is_said_and_leaves_nothing(pcme, options, says, tmp_path):
    with pytest.raises(InputError, match=says):
        export_engine(pcme.model, tmp_path / "out", **options)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_there_is_left_alone(pcme, tmp_path):
    with pytest.raises(InputError, match="exists already"):
        export_engine(pcme.model, tmp_path, "onnx")


def test_tokenizers_give_the_same_ids():
    words = zoo.from_preset("toy_birds_pfe").tokenizer
    pieces = BertTokenizer([*SPECIAL, "a", "bird", "##s", "cafe", ",", "red"], max_words=7)
    texts = ["A Red bird's wing", "café, a birds", "snow-white «eagle»", "", "12 ½ birds—two"]
    for ours in (words, pieces):
        theirs = tokenizer_of(ours).encode_batch(texts)
        np.testing.assert_array_equal([one.ids for one in theirs], ours(tf.constant(texts)))
