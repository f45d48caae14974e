"""Flags that do not fit each other or the data end in one line, before anything is trained."""

import importlib

import pytest

import pcme_cub
from zoo import cli
from zoo.training.checks import TRACEBACK

SMALL = ("--smoke", "--backbone=tiny", "--image-size=32", "--dim=8", "--word-dim=8")
pytestmark = pytest.mark.usefixtures("small_sets", "undecoded")


@pytest.mark.parametrize(
    ("recipe", "flags", "said"),
    [
        ("birds", "--system=pfe", "--points must be given with --system pfe"),
        ("dive_coco", "--similarity=cosine", "cosine"),
        ("dive_coco", "--epochs=2 --warm-up-epochs=3", "--warm-up-epochs"),
        ("dive_coco", "--features=regions --frozen-epochs=1", "--frozen-epochs"),
        ("pcme_coco", "--captions=text_c10", "--captions"),
        ("pcme_coco", "--crop-and-flip --cache-features --warm-up-epochs=1", "--no-cache-features"),
        ("pcme_cub", "--dims=8", "did you mean --dim?"),
        ("pcme_cub", "--test-similarities=cosine_distance", "cosine_distance"),
        ("pcmepp_coco", "--epochs=2 --last-epochs=5", "--epochs"),
        ("pcmepp_coco", "--toy-images=60", "--toy scenes"),
        ("pcmepp_coco", "--toy=scenes --toy-images=9", "at least 10"),
        ("pcmepp_coco", "--variance-blocks=2", "--variance-blocks"),
        ("pcmepp_coco", "--backbone=vit_b_32 --cache-features", "--cache-features"),
        ("pcmepp_redcaps", "--toy=scenes", "--toy"),
        ("pfe_cub", "--held-out=val1", "--held-out val1 needs --validation none"),
        ("pfe_cub", "--data-dir=CUB --image-weights=none --more-classes=3", "no --data-dir"),
        ("pfe_cub", "--data-dir=CUB", "--image-weights must be"),
        ("vse_coco", "--epochs=3 --drop-epoch=2 --warm-up-epochs=4", "--warm-up-epochs"),
        ("vse_coco", "--features=regions --fine-tuning-epochs=2", "--fine-tuning-epochs"),
    ],
)
def test_the_parser_refuses_what_does_not_fit(recipe, flags, said, error_of):
    assert said in error_of(cli.parse, importlib.import_module(recipe).Settings, flags.split())


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--dim=1"], "even for two halves"),
        (["--backbone=resnet50", "--image-size=8"], "at least 32x32"),
        (["--pairs-per-class=1000"], "received 1000"),
        (["--test-similarities", "own", "chamfer"], "--test-similarities chamfer"),
    ],
    ids=str,
)
def test_it_is_one_line_and_nothing_is_trained(tmp_path, error_of, flags, said):
    errors = error_of(cli.run, pcme_cub.main, [*SMALL, *flags, f"--out={tmp_path / 'run'}"])
    (line,) = [line for line in errors.splitlines() if line.startswith("error:")]
    assert said in line
    assert "\x1b" not in line
    assert not (tmp_path / "run" / "history.csv").exists()
    if TRACEBACK in line:  # a defect of ours would be told by it
        assert "Traceback" in (tmp_path / "run" / TRACEBACK).read_text()
