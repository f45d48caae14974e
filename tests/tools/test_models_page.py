import csv

import numpy as np
import pytest

from tools import models_page, paper_figures
from zoo.errors import InputError
from zoo.files import RunFolder


def finish(folder, seed, r_precision, split="birds test: 9 images", uncertain=True, **settings):
    run = RunFolder.open(folder, {"seed": seed, "out": str(folder), **settings})
    command = f"recipes/pcme_cub.py --out {folder} --seed {seed} --dim=8"
    run.write_json("config.json", {**run.config, "command": command})
    own = {
        f"{side}_{name}": r_precision
        for side in ("i2t", "t2i")
        for name in ("r_precision", "recall@1")
    }
    chance = {key: 3.0 for key in own} | {"rsum": 60.0}
    oracle = {key: 90.0 for key in own} | {"rsum": 540.0}
    metrics = {
        "retrieval": {"csd": {**own, "rsum": 10 * r_precision}},
        "chance": chance,
        "oracle": oracle,
        "split": split,
        "seconds": 120.0,
    }
    if uncertain:
        quality = {"spearman_of_bins": -0.5, "risk_coverage": {"aurc": 0.25}}
        metrics |= {"uncertainty": {"i2t": quality, "t2i": quality}, "ambiguity_spearman": 0.3}
        kept = {"nauc": 0.5, "aurc": 0.4, "calibration_error": 0.05, "smallest_k": None}
        metrics["confidence"] = {"i2t": kept, "t2i": kept}
    run.finish(metrics)
    return run


def cells(line):
    return [cell.strip() for cell in line.strip("|\n").split("|")]


def test_seeds_are_one_row_and_splits_have_tables_of_their_own(tmp_path):
    runs = [
        finish(tmp_path / "a0", 0, 10.0),
        finish(tmp_path / "a1", 1, 14.0),
        finish(tmp_path / "b", 0, 20.0, uncertain=False, mean_only=True),
        finish(tmp_path / "c", 0, 30.0, split="scenes test: 9 images"),
    ]
    unfinished = RunFolder.open(tmp_path / "d", {})
    text = models_page.page([*runs, unfinished])
    first, second = text.split("### scenes test")
    rows = [cells(line) for line in first.splitlines() if line.startswith("| ")]
    header, b, a, oracle, chance = rows  # the best first
    deviation = np.std([10, 14], ddof=1)
    assert [a[0], b[0]] == ["PCME", "PCME, means only"]
    assert a[-1] == b[-1] == "`pcme_cub.py --dim=8`"
    found = dict(zip(header, a, strict=True))
    assert found["R-P i2t / t2i"] == f"12.0 ± {deviation:.1f} / 12.0 ± {deviation:.1f}"
    assert found["RSUM"] == "120.0 ± 28.3"
    assert found["bins i2t / t2i"] == "−0.50 ± 0.00 / −0.50 ± 0.00"
    assert found["AURC i2t / t2i"] == "25.0 ± 0.0 / 25.0 ± 0.0"
    assert found["nAUC i2t / t2i"] == "0.50 ± 0.00 / 0.50 ± 0.00"
    assert found["calibration error i2t / t2i"] == "5.0 ± 0.0 / 5.0 ± 0.0"
    assert "first k, 90 % i2t / t2i" not in header, "a column of nothing"
    assert found["score set, 90 % i2t / t2i"] == "91.0 ± 0.0 / 91.0 ± 0.0"
    assert found["minutes of training"] == "2.0 ± 0.0"
    assert found["seeds"] == "0, 1"
    assert "CPU core" in found["machine"]
    assert dict(zip(header, b, strict=True))["ambiguity"] == ""
    assert chance[:3] == ["chance", "3.0 / 3.0", "3.0 / 3.0"]
    assert oracle[:2] == ["oracle", "90.0 / 90.0"]
    assert "30.0 / 30.0" in second
    assert f"Not finished, or not of retrieval: {unfinished.path}." in second


def test_a_file_keeps_all_but_what_is_between_its_marks(tmp_path, capsys):
    run = finish(tmp_path / "a", 0, 10.0)
    page = tmp_path / "models.md"
    page.write_text(f"# Models\n\n{models_page.BEGIN}\nold\n{models_page.END}\n\nThe end.\n")
    for _ in range(2):  # again changes nothing
        models_page.main([str(run.path), f"--out={page}", "--papers"])
        text = page.read_text()
        assert text.startswith(f"# Models\n\n{models_page.BEGIN}\n\n### birds test")
        assert text.endswith(f"{models_page.END}\n\nThe end.\n")
        assert text.count("pcme_cub.py") == 1
        assert "old" not in text
        assert "context, not a comparison" in text
    page.write_text("# Models\n")
    with pytest.raises(InputError, match="expected one line"):
        models_page.main([str(run.path), f"--out={page}"])
    assert page.read_text() == "# Models\n"
    with pytest.raises(InputError, match="no finished run"):
        models_page.page([RunFolder.open(tmp_path / "empty", {})])
    new = tmp_path / "new.md"
    models_page.main([str(run.path), f"--out={new}"])
    assert new.read_text().startswith(models_page.BEGIN)


def test_a_brief_page_has_the_figures_of_the_whole_one_in_fewer_columns(tmp_path):
    runs = [finish(tmp_path / "a0", 0, 10.0), finish(tmp_path / "a1", 1, 14.0)]
    tables = []
    for brief in (False, True):
        rows = [cells(line) for line in models_page.page(runs, brief).splitlines() if "|" in line]
        assert len({len(row) for row in rows}) == 1
        header, row = (next(r for r in rows if r[0] == name) for name in ("model", "PCME"))
        tables.append(dict(zip(header, row, strict=True)))
    whole, brief = tables
    assert brief.pop("folder") == "`a0`"
    assert brief.items() < whole.items()
    assert [title.partition(" ")[0] for title in brief] == (["model", "R@1", "RSUM", "ambiguity"])


def test_all_values_of_a_page_are_in_its_csv(tmp_path):
    runs = [finish(tmp_path / "a0", 0, 10.0), finish(tmp_path / "a1", 1, 14.0)]
    text = models_page.as_csv(models_page.page(runs))
    rows = list(csv.DictReader(text.splitlines()))
    assert {row["split"] for row in rows} == {"birds test: 9 images (toy data)"}
    found = {row["column"]: row["value"] for row in rows if row["model"] == "PCME"}
    assert found["RSUM"] == "120.0 ± 28.3"
    assert found["seeds"] == "0, 1"
    assert found["run"] == "pcme_cub.py --dim=8"


def test_what_json_has_no_number_for_is_a_dash(tmp_path):
    run = finish(tmp_path / "a", 0, 10.0)
    run.finish({**run.metrics, "ambiguity_spearman": float("nan")})
    (row,) = (line for line in models_page.page([run]).splitlines() if "dim=8" in line)
    assert cells(row)[6] == "–"


def test_a_run_that_a_table_made_goes_by_its_folder(tmp_path):
    run = finish(tmp_path / "without_vib-seed-3", 3, 10.0)
    assert models_page.label(run) == "pcme_cub.py --dim=8"
    run.write_json("config.json", {**run.config, "command": "recipes/table.py --out runs/table"})
    assert models_page.label(run) == "table.py: without_vib"
    run.write_json("config.json", {"settings": {}})
    assert models_page.label(run) == "without_vib"
    assert models_page.machine(run) == "not recorded"


def test_the_papers_figures_form_a_table():
    lines = paper_figures.markdown().splitlines()
    assert len({line.count("|") for line in lines}) == 1
    assert len(lines) == 2 + len(paper_figures.REPORTED) + len(paper_figures.MEAN_RECALL)
