"""Which part of a photo the recipes show on real data, in training and in evaluation."""

import importlib

import pytest

import daa_coco
import daa_cub
import dive_coco
import gaussian_vsepp_coco
import pcme_cub
import pcmepp_coco
import pvse_cub
import triplet_training
import vse_coco
from zoo import cli

MIDDLE = {"crop_fraction": 0.875}  # 224 of 256
WHOLE = {"resize": "stretch"}
OF_RECIPES = {"pcme_coco": MIDDLE, "pcme_cub": MIDDLE, "pcme_2d": MIDDLE}
OF_RECIPES |= {"pcmepp_coco": WHOLE, "pcmepp_redcaps": WHOLE}


def _shown(description):
    return {name: description[name] for name in ("resize", "crop_fraction") if name in description}


@pytest.mark.parametrize("name", OF_RECIPES)
def test_config_says_how_photos_are_resized(name, tmp_path):
    recipe = importlib.import_module(name)
    settings = cli.parse(recipe.Settings, [f"--data-dir={tmp_path}", "--backbone=tiny"])
    assert _shown(recipe.describe_data(settings)) == OF_RECIPES[name]
    assert _shown(recipe.describe_data(cli.parse(recipe.Settings, []))) == {}, (
        "toy data stay as they are"
    )


def test_vsepp_trains_on_parts_of_the_original_and_is_asked_of_its_middle(tmp_path):
    settings = cli.parse(vse_coco.Settings, [f"--data-dir={tmp_path}", "--backbone=tiny"])
    assert _shown(triplet_training.describe_data(settings, "coco")) == MIDDLE
    assert settings.crop_and_flip
    settings = cli.parse(vse_coco.Settings, [f"--data-dir={tmp_path}", "--features=regions"])
    assert _shown(triplet_training.describe_data(settings, "coco")) == {}


PICTURES = [daa_coco, daa_cub, dive_coco, gaussian_vsepp_coco, pcme_cub, pvse_cub, vse_coco]


@pytest.mark.parametrize("recipe", [*PICTURES, pcmepp_coco])
def test_random_weights_have_to_be_asked_for(recipe, error_of):
    name = "weights" if recipe is pcmepp_coco else "image_weights"
    flag = "--" + name.replace("_", "-")
    said = error_of(cli.parse, recipe.Settings, ["--data-dir=data"])
    assert f"{flag} must be a local file" in said
    asked = cli.parse(recipe.Settings, ["--data-dir=data", f"{flag}=none"])
    assert getattr(asked, name) is None
    told = cli.parse(recipe.Settings, ["--data-dir=data", f"{flag}=file.safetensors"])
    assert getattr(told, name) == "file.safetensors"
    tiny = cli.parse(recipe.Settings, ["--data-dir=data", "--backbone=tiny"])
    assert getattr(tiny, name) is None
    assert getattr(cli.parse(recipe.Settings, []), name) is None, "the toy data are for tiny ones"
