"""Every sweep of docs/reproduce.md runs in small, from its command to its table."""

import dataclasses
import sys

import pytest

from studies import ablations, pcmepp_table
from zoo.data import toy_scenes

SMALL = {"dim": 8, "word_dim": 8, "max_words": 9, "similarity_dim": 4, "batch_size": 8}


@pytest.fixture
def _scenes(tmp_path, monkeypatch):
    scenes = toy_scenes.generate(tmp_path / "scenes", num_images=40, image_size=32, region_dim=16)
    monkeypatch.setattr(toy_scenes, "generate", lambda root_of_recipes, **sizes: scenes)


def small(main, **sizes):
    fields = {field.name for field in dataclasses.fields(sys.modules[main.__module__].Settings)}
    given = {name: value for name, value in {**SMALL, **sizes}.items() if name in fields}
    return [f"{name.replace('_', '-')}={value}" for name, value in given.items()]


@pytest.mark.very_slow  # test_reproduce.py runs a row, and test_ablations.py prints tables
@pytest.mark.usefixtures("_scenes", "one_eagerly")
@pytest.mark.parametrize("sweep", ablations.SWEEPS)
def test_a_sweep_trains_and_prints_what_its_runs_have(sweep, tmp_path):
    """By its last row, which differs most from the recipe's own settings."""
    name, row = list(ablations.SWEEPS[sweep].rows.items())[-1]
    sizes = {"backbone": "tiny"} if "--backbone=vit_b_32" in row.flags else {}
    out = tmp_path / "out"
    flags = [f"--sweep={sweep}", "--rows", name, "--seeds", "0", "--smoke", f"--out={out}"]
    ablations.main([*flags, "--also", *small(row.main, **sizes)])
    header, _, line = (out / "table.md").read_text().splitlines()
    assert line.startswith(f"| {name} | ")
    assert "R@1 i2t / t2i" in header
    assert line.count("|") == header.count("|")


@pytest.mark.very_slow
@pytest.mark.usefixtures("_scenes", "one_eagerly")
def test_the_table_of_pcmepp_runs_in_small(tmp_path):
    out = tmp_path / "out"
    rows = ["InfoNCE", "20 % shuffled: PCME"]
    also = small(pcmepp_table.CLEAN, toy="scenes")
    flags = ["--rows", *rows, "--seeds", "0", "--smoke", f"--out={out}"]
    pcmepp_table.main([*flags, "--also", *also])
    assert [line.split(" | ")[0] for line in (out / "table.md").read_text().splitlines()[2:]] == [
        f"| {name}" for name in rows
    ]
