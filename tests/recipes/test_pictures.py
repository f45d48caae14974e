"""Which part of a photo the recipes show on real data, in training and in evaluation."""

import pytest

import daa_coco
import daa_cub
import pcme_2d
import pcme_coco
import pcme_cub
import pcmepp_coco
import pcmepp_redcaps
import pvse_cub
import triplet_training
import vse_coco
from zoo import cli

MIDDLE = {"crop_fraction": 0.875}  # 224 of 256
WHOLE = {"resize": "stretch"}


def _shown(description):
    return {name: description[name] for name in ("resize", "crop_fraction") if name in description}


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        (pcme_coco, MIDDLE),
        (pcme_cub, MIDDLE),
        (pcme_2d, MIDDLE),
        (pcmepp_coco, WHOLE),
        (pcmepp_redcaps, WHOLE),
    ],
)
def test_config_says_how_photos_are_resized(recipe, expected, tmp_path):
    settings = cli.parse(recipe.Settings, [f"--data-dir={tmp_path}", "--backbone=tiny"])
    assert _shown(recipe.data(settings)) == expected
    assert _shown(recipe.data(cli.parse(recipe.Settings, []))) == {}, "toy data stay as they are"


@pytest.mark.parametrize("settings_class", [daa_coco.Settings, daa_cub.Settings, pvse_cub.Settings])
def test_pcme_bert_and_pvse_read_the_middle(settings_class, tmp_path):
    assert (
        cli.parse(settings_class, [f"--data-dir={tmp_path}", "--backbone=tiny"]).crop_fraction
        == 0.875
    )


def test_vsepp_trains_on_parts_of_the_original_and_is_asked_of_its_middle(tmp_path):
    settings = cli.parse(vse_coco.Settings, [f"--data-dir={tmp_path}", "--backbone=tiny"])
    assert _shown(triplet_training.data(settings, "coco")) == MIDDLE
    assert settings.crop_and_flip
    settings = cli.parse(vse_coco.Settings, [f"--data-dir={tmp_path}", "--features=regions"])
    assert _shown(triplet_training.data(settings, "coco")) == {}
