"""A folder of pictures with a table of captions, from the table to the report."""

import json

import numpy as np
import pytest
from PIL import Image

import own_pairs
from zoo import cli
from zoo.files import RunFolder


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    rng = np.random.default_rng(0)
    rows = ["image,caption"]
    for index in range(24):
        Image.fromarray(rng.integers(0, 256, (40, 50, 3), dtype=np.uint8)).save(
            folder / f"{index}.jpg"
        )
        rows += [f"{index}.jpg,picture number {index}", f"{index}.jpg,noise of seed {index}"]
    (folder / "pairs.csv").write_text("\n".join(rows))
    return folder


@pytest.mark.slow
def test_one_command_from_a_table_to_a_report(photos, tmp_path):
    (photos / "3.jpg").write_bytes(b"not a picture")
    out = tmp_path / "run"
    small = "--backbone=tiny --image-size=32 --dim=8 --word-dim=8 --batch-size=8 --max-words=8"
    flags = ["--smoke", "--skip-bad", *small.split()]
    own_pairs.main([f"--data-dir={photos}", f"--out={out}", *flags])
    run = RunFolder.existing(out)
    assert run.finished
    assert run.model_path.exists()
    (line,) = (out / "skipped.jsonl").read_text().splitlines()[:1]
    assert "3.jpg" in json.loads(line)["where"]


def test_a_folder_without_a_table_is_named(tmp_path, capsys):
    places = [f"--data-dir={tmp_path}", f"--out={tmp_path / 'run'}", "--backbone=tiny"]
    with pytest.raises(SystemExit) as stop:
        cli.run(own_pairs.main, places)
    assert stop.value.code == 2
    assert "pairs.csv" in capsys.readouterr().err
