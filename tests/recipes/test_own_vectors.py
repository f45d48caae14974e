"""Two arrays to a run that is searched, reported and exported."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

import own_vectors
import zoo
from export import __main__ as export
from halo_search.cli import report as report_command
from halo_search.cli import search as search_command
from halo_search.errors import InputError
from zoo import search


def train(files, out, *flags):
    images, captions = str(files / "images.npy"), str(files / "captions.npy")
    return own_vectors.main(["--images", images, "--captions", captions, "--out", str(out), *flags])


def test_nothing_trained_is_calibrated_searched_reported_and_exported(files, tmp_path, capsys):
    run = tmp_path / "run"
    results = train(files, run)
    assert results["retrieval"]["cosine"]["i2t_recall@1"] > 50
    described = json.loads((run / "config.json").read_text())["data"]
    assert described["images"] == str(files / "images.npy")
    index = str(tmp_path / "index")
    search_command.main(["build", str(files / "images.npy"), index, "--model", str(run)])
    search_command.main(
        ["query", index, "--vector", str(files / "captions.npy"), "--row", "7", "-k", "2"]
    )
    assert "image 7\n" in capsys.readouterr().out
    with pytest.raises(InputError, match="the model reads vectors of captions; search with"):
        search_command.main(["query", index, "a red bird"])
    with pytest.raises(InputError, match=r"expected rows below 300; received \[300\]"):
        search_command.main(
            ["query", index, "--vector", str(files / "captions.npy"), "--row", "300"]
        )
    report_command.main([str(run), "--out", str(tmp_path / "page"), "--resamples", "10"])
    assert (tmp_path / "page" / "report.md").is_file()
    export.main([str(run), str(tmp_path / "served")])
    served = tf.saved_model.load(str(tmp_path / "served" / "1")).signatures
    model = zoo.from_preset(run)
    vectors = np.load(files / "captions.npy")[:3]
    found = served["encode_captions"](captions=tf.constant(vectors))["mean"]
    np.testing.assert_allclose(found, model.encode_captions(vectors), atol=1e-6)
    assert set(served["match"].structured_outputs) >= {"similarity", "image_mean"}


def test_where_no_row_is_for_training_nothing_is_asked_of_it(files, tmp_path):
    """Of the method none, which trains nothing; then nothing tells which questions are usual."""
    splits = tmp_path / "splits.txt"
    splits.write_text("\n".join(["validation"] * 150 + ["test"] * 150))
    train(files, tmp_path / "run", "--splits", str(splits))
    confidence = json.loads((tmp_path / "run" / "metrics.json").read_text())["confidence"]
    assert confidence["t2i"]["calibration_error"] < 0.2
    assert "declined_as_unknown" not in confidence["t2i"]


@pytest.mark.usefixtures("one_eagerly")
@pytest.mark.parametrize(
    "method",
    [  # a point and a Gaussian, of those that have a model
        pytest.param(m, marks=[] if m in ("infonce", "pcmepp") else pytest.mark.very_slow)
        for m in own_vectors.METHODS
        if m != "none"
    ],
)
def test_a_method_makes_a_model_that_says_the_same_after_loading(files, tmp_path, method):
    run = tmp_path / "run"
    train(files, run, "--method", method, "--epochs", "1", "--batch-size", "60")
    model = keras.saving.load_model(run / "model.keras")
    images = model.encode_images(np.load(files / "images.npy")[:9])
    captions = model.encode_captions(np.load(files / "captions.npy")[:9])
    logits = np.asarray(model.similarity(images, captions))
    if method != "dive":  # which alone does not begin as the vectors themselves
        assert np.mean(logits.argmax(1) == np.arange(9)) > 0.5
    index = search.Index.build(images, model.similarity)
    scores, ids = index.search(captions, 3)
    np.testing.assert_allclose(scores[:, 0], logits.max(0), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(ids[:, 0], logits.argmax(0))
    assert zoo.training.show(zoo.training.Run(zoo.models.run_folder.RunFolder.existing(run)))


def test_what_cannot_be_is_said(files, tmp_path, error_of):
    np.save(tmp_path / "narrow.npy", np.ones((300, 4), "float32"))
    flags = ["--images", str(files / "images.npy"), "--captions", str(tmp_path / "narrow.npy")]
    with pytest.raises(InputError, match="must be of one width; received 8 and 4"):
        own_vectors.main([*flags, "--out", str(tmp_path / "run")])
    assert "--images and --captions must be given together" in error_of(own_vectors.main, flags[:2])
