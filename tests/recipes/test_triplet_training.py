"""The recipes of VSE++, VSRN and their Gaussian versions from end to end, on a few toy scenes."""

import numpy as np
import pytest

import gaussian_vsepp_coco
import zoo
from studies import crop_ambiguity
from zoo import training
from zoo.models.run_folder import RunFolder

pytestmark = pytest.mark.usefixtures("run_eagerly", "small_sets")

SMALL = ["--smoke", "--image-size=32", "--dim=8", "--word-dim=8", "--batch-size=8", "--max-words=9"]
SMALL += ["--steps-per-epoch=1"]


@pytest.fixture(scope="module")
def gaussian(drawn_annotations, small_sets, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "gaussian_vsepp"
    gaussian_vsepp_coco.main([*SMALL, f"--out={out}", f"--annotations-dir={drawn_annotations}"])
    return RunFolder.existing(out)


@pytest.mark.slow
def test_gaussian_vsepp_and_rpc2(gaussian):
    history = training.read_history(gaussian.history_path)
    assert list(history["phase"]) == ["sum_of_hinges", "semi_hard"]
    metrics = gaussian.metrics
    assert set(metrics["retrieval"]) == {"kl", "euclidean"}
    assert {"cxc_i2t_r_precision", "cxc_t2i_r_precision"} <= set(metrics["coco"])
    assert {"uncertainty", "ambiguity_spearman", "true_matches", "seconds"} <= set(metrics)
    model = zoo.from_preset(gaussian.path)
    variance = np.asarray(model.encode_captions(["a red bird"]).variance())
    assert variance.shape == (1, 8)
    assert ((variance >= 0.1) & (variance <= 10)).all()


@pytest.mark.slow
def test_rpc2_is_shown(gaussian, capsys):
    gaussian_vsepp_coco.main([*SMALL, f"--out={gaussian.path}"])
    printed = capsys.readouterr().out
    assert "is finished" in printed
    assert "RPC2" in printed


@pytest.mark.slow
def test_crop_ambiguity_of_that_run(gaussian, tmp_path, capsys):
    flags = [
        f"--model={gaussian.path}",
        f"--out={tmp_path / 'crops'}",
        "--thresholds",
        "0.2",
        "0.9",
    ]
    results = crop_ambiguity.main(flags)
    few, all_of_them = results["crop_triplets"]
    assert few["triplets"] <= all_of_them["triplets"] == results["images"] > 3
    assert set(all_of_them["selection"]) == {"crop_a", "crop_c", "caption_a", "caption_c"}
    assert {path.stem for path in (tmp_path / "crops" / "plots").iterdir()} == {
        "crops",
        "mean_uncertainty",
        "selection_accuracy",
    }
    assert "Binary selection accuracy" in capsys.readouterr().out
    crop_ambiguity.main(flags)
    assert "is finished" in capsys.readouterr().out


def test_selection_by_hand():
    """Two triplets; rows are crops A and C, columns captions A and C."""
    similarity = np.array([[[5.0, 1.0], [2.0, 3.0]], [[1.0, 4.0], [2.0, 2.0]]])
    found = crop_ambiguity.summary({"similarity": similarity})
    # Crop A: caption A (5 > 1), then C (1 < 4). Crop C: caption C (3 > 2), then a tie.
    # Caption A: crop A (5 > 2), then C (1 < 2). Caption C: crop C (3 > 1), then A (4 > 2).
    expected = {"crop_a": 0.5, "crop_c": 0.5, "caption_a": 0.5, "caption_c": 0.5}
    assert found == {"selection": expected}
    tie_free = similarity + np.array([[0, 0], [0, 9.0]])
    assert crop_ambiguity.summary({"similarity": tie_free})["selection"] == {
        "crop_a": 0.5,
        "crop_c": 1.0,
        "caption_a": 0.5,
        "caption_c": 1.0,
    }
    uncertainty = np.array([[0.0, 1.0], [3.0, 2.0]])
    more = {"similarity": similarity, "crops": uncertainty, "captions": uncertainty}
    found = crop_ambiguity.summary(more)
    assert found["mean_uncertainty"]["crops"] == {"a": 1.5, "c": 1.5}
