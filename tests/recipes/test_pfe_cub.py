"""Points, then their variances, in one run, on a small set of toy birds."""

import json

import numpy as np
import pytest

import pfe_cub
from zoo import cli, data, models, training
from zoo.data import toy_birds

# The same phase of variances is tested in graphs in test_own_pairs.py.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("run_eagerly")]
SMALL = ["--smoke", "--image-size=32", "--dim=8", "--word-dim=8", "--max-words=9"]
SMALL += ["--batch-size=12", "--steps-per-epoch=1"]


@pytest.fixture(scope="module", autouse=True)
def fewer_birds(tmp_path_factory):
    """Small birds in place of the embedded ones."""
    root = tmp_path_factory.mktemp("toy") / "birds"
    toy_birds.generate(root, num_classes=24, images_per_class=5, image_size=32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toy_birds, "generate", lambda root_of_recipes, **given: root)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of seconds, and its results."""
    out = tmp_path_factory.mktemp("pfe") / "run"
    return out, pfe_cub.main([*SMALL, f"--out={out}"])


def test_variances_are_learnt_and_the_oracle_is_ahead(finished):
    out, results = finished
    assert json.loads((out / "config.json").read_text())["data"]["validation"] == "val1"
    own = results["retrieval"]["csd"]
    for key in ("t2i_recall@1", "t2i_r_precision", "i2t_recall@1"):
        assert results["oracle"][key] > own[key]
    assert set(results["uncertainty"]) == {"i2t", "t2i"}
    model = models.from_preset(out)
    change = next(w for w in model.image_encoder.weights if "variance_map" in w.path)
    assert np.abs(change).max() > 0
    again = pfe_cub.main([*SMALL, f"--out={out}"])
    assert again["oracle"] == results["oracle"]


@pytest.mark.very_slow  # test_pcme_cub.py kills a run
def test_stopped_between_the_phases_it_ends_as_if_it_had_not_been(finished, tmp_path, monkeypatch):
    fit, before = training.Run.fit, {}
    test = data.open({"loader": "toy_birds", "image_size": 32}, "test")
    inputs = {
        "encode_images": np.stack([test.picture(index) for index in range(4)]),
        "encode_captions": list(test.records.captions[:4]),
    }

    def stops(run, model, phase, *rest, **options):
        if phase == "variances":
            for encode, given in inputs.items():
                found = getattr(run.model, encode)(given)
                before[encode] = np.asarray(found.mean()), np.asarray(found.stddev())
            raise KeyboardInterrupt
        fit(run, model, phase, *rest, **options)

    command = [*SMALL, f"--out={tmp_path / 'run'}"]
    with monkeypatch.context() as patch:
        patch.setattr(training.Run, "fit", stops)
        with pytest.raises(KeyboardInterrupt):
            pfe_cub.main(command)
    pfe_cub.main(command)
    ours, theirs = (models.from_preset(out) for out in (tmp_path / "run", finished[0]))
    for one, other in zip(ours.weights, theirs.weights, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=one.path)
    for encode, (mean, spread) in before.items():  # the variances leave the points alone
        found = getattr(ours, encode)(inputs[encode])
        np.testing.assert_array_equal(found.mean(), mean)
        assert np.abs(np.asarray(found.stddev()) - spread).max() > 0


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--held-out=val1"], "--held-out val1 needs --validation none"),
        (["--data-dir=CUB", "--image-weights=none", "--more-classes=3"], "no --data-dir"),
        (["--data-dir=CUB"], "--image-weights must be"),
    ],
)
def test_what_cannot_be_is_said(flags, said, capsys):
    with pytest.raises(SystemExit) as error:
        cli.parse(pfe_cub.Settings, flags)
    assert error.value.code == 2
    assert said in capsys.readouterr().err
