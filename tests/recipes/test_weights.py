"""A network of random weights is not trained on real data unless that was asked for."""

import pytest

import daa_coco
import daa_cub
import dive_coco
import gaussian_vsepp_coco
import pcme_cub
import pcmepp_coco
import pvse_cub
import vse_coco
from zoo import cli

PICTURES = [daa_coco, daa_cub, dive_coco, gaussian_vsepp_coco, pcme_cub, pvse_cub, vse_coco]


@pytest.mark.parametrize("recipe", [*PICTURES, pcmepp_coco])
def test_random_weights_have_to_be_asked_for(recipe, capsys):
    name = "weights" if recipe is pcmepp_coco else "image_weights"
    flag = "--" + name.replace("_", "-")
    with pytest.raises(SystemExit) as stop:
        cli.parse(recipe.Settings, ["--data-dir=data"])
    assert stop.value.code == 2
    assert f"{flag} must be a local file" in capsys.readouterr().err
    asked = cli.parse(recipe.Settings, ["--data-dir=data", f"{flag}=none"])
    assert getattr(asked, name) is None
    told = cli.parse(recipe.Settings, ["--data-dir=data", f"{flag}=file.safetensors"])
    assert getattr(told, name) == "file.safetensors"
    tiny = cli.parse(recipe.Settings, ["--data-dir=data", "--backbone=tiny"])
    assert getattr(tiny, name) is None
    assert getattr(cli.parse(recipe.Settings, []), name) is None, "the toy data are for tiny ones"
