"""Points, then their variances, in one run, on a small set of toy birds."""

import json

import numpy as np
import pytest

import pfe_cub
from zoo import cli, models

# The same phase of variances is tested in graphs in test_own_pairs.py.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("run_eagerly", "small_sets")]
SMALL = ["--smoke", "--image-size=32", "--dim=8", "--word-dim=8", "--max-words=9"]
SMALL += ["--batch-size=12", "--steps-per-epoch=1"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory, small_sets):
    """A run of seconds, and its results."""
    out = tmp_path_factory.mktemp("pfe") / "run"
    return out, pfe_cub.main([*SMALL, f"--out={out}"])


@pytest.mark.very_slow  # test_own_pairs.py trains variances over points
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
