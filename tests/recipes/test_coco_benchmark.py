"""COCO's benchmark from a recipe: ids are checked before training."""

import json

import numpy as np
import pytest

import vse_coco
from halo_search.errors import InputError
from zoo import cli, evaluation, training
from zoo.models.run_folder import RunFolder

SMALL = ["--smoke", "--dim=8", "--word-dim=8", "--batch-size=8", "--max-words=9"]


@pytest.fixture(scope="module")
def scenes(drawn_scenes):
    """Toy Scenes as if they were the real data: in COCO's layout, with instances."""
    return drawn_scenes / "coco"


@pytest.mark.usefixtures("undecoded")
def test_ids_are_checked_before_training(scenes, drawn_annotations, tmp_path, capsys):
    (tmp_path / "more").mkdir()
    for path in drawn_annotations.iterdir():
        (tmp_path / "more" / path.name).write_bytes(path.read_bytes())
    name = tmp_path / "more" / "original_caption_to_image.json"
    matches = json.loads(name.read_text())
    name.write_text(json.dumps({**matches, "987654": next(iter(matches.values()))}))
    ids = np.load(drawn_annotations / "coco_test_ids.npy")
    np.save(tmp_path / "more" / "coco_test_ids.npy", [*ids, 987654])
    flags = [*SMALL, "--image-size=16", f"--data-dir={scenes}", "--backbone=tiny"]
    out = tmp_path / "run"
    settings = cli.parse(
        vse_coco.Settings, [*flags, f"--annotations-dir={tmp_path / 'more'}", f"--out={out}"]
    )
    with pytest.raises(InputError, match=r"--annotations-dir .*COCO test.*lacks .*987654"):
        training.start(settings, vse_coco.triplet_training.describe_data(settings, "coco"))
    assert not list(out.glob("checkpoints/*"))
    settings = cli.parse(
        vse_coco.Settings, [*flags, f"--annotations-dir={drawn_annotations}", f"--out={out}"]
    )
    training.start(settings, vse_coco.triplet_training.describe_data(settings, "coco"))
    assert "PMRP" not in capsys.readouterr().out


def test_ids_are_checked_before_an_ensemble_is_encoded(
    scenes, drawn_annotations, tmp_path, monkeypatch
):
    described = {"loader": "coco", "root": str(scenes), "image_size": 16, "held_out": "val"}
    folder = RunFolder.open(tmp_path / "both", {}, data=described)
    monkeypatch.setattr(evaluation, "ensemble", lambda *given: pytest.fail("encoded"))
    with pytest.raises(InputError, match=r"--annotations-dir .*COCO val.*lacks"):
        training.finish_ensemble(folder, ["runs/a", "runs/b"], drawn_annotations)
    assert not folder.finished
