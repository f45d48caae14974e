"""Sweeps of ablations: their flags are real ones, and what is finished is not run again."""

import sys
import types

import pytest

import pcmepp_coco
from studies import ablations, columns
from studies.seed_table import Curves
from zoo import cli
from zoo.models.run_folder import RunFolder

pytestmark = pytest.mark.usefixtures("run_eagerly")


@pytest.mark.parametrize("sweep", ablations.SWEEPS)
def test_every_row_is_a_run_of_its_own(sweep):
    rows = ablations.SWEEPS[sweep].rows
    settings = [
        cli.parse(sys.modules[row.main.__module__].Settings, list(row.flags))
        for row in rows.values()
    ]
    assert len({repr(one) for one in settings}) == len(rows)


def test_table_c3_mixes_as_its_rows_say():
    rows, streams = ablations.SWEEPS["pcmepp_mixing"].rows, {}
    split = types.SimpleNamespace(records=types.SimpleNamespace(class_names=None), source=None)
    for name, row in rows.items():
        settings = cli.parse(pcmepp_coco.Settings, list(row.flags))
        stream = pcmepp_coco.batches_of(settings, split, None, "training")
        streams[name] = stream.mixing
    one = streams["λ of Beta(1, 1), 50 %, whole batches"]
    assert (one["share"], one["alpha"], one["whole_batches"]) == (0.5, 1.0, True)
    own = streams["λ of Beta(2, 2)"]
    assert own == {"share": 0.25, "alpha": 2.0, "mixup": 0.5, "whole_batches": False}
    assert [streams[f"{kind} alone"]["mixup"] for kind in ("Mixup", "CutMix")] == [1, 0]


def test_folds_are_of_cub(error_of):
    said = error_of(ablations.main, ["--sweep=dive_sets", "--folds", "val1"])
    assert "--folds are some of val1, val2, val3" in said


def test_a_sweep_must_be_named(error_of):
    for flags in ([], ["--sweep=pcme"], ["--sweep=dive_sets", "--rows", "K = 99"]):
        assert len(error_of(ablations.main, flags).strip().splitlines()) == 1


def run_of(out, flags, metrics):
    RunFolder.open(out, {"flags": flags}).finish(metrics)


def test_a_table_prints_what_the_paper_prints_and_nothing_of_a_larger_gallery(tmp_path):
    """PCME++'s tables: means of both directions by four truths, and RSUM of 1K; below it both
    directions. No run has R@5 and R@10, so that there is no third table."""
    coco = {}
    for place, (truth, metric) in enumerate(columns.PRINTED_OF_COCO):
        coco |= {f"{truth}_i2t_{metric}": 10.0 * place, f"{truth}_t2i_{metric}": 10.0 * place + 2}
    whole = {"i2t_recall@1": 1.0, "t2i_recall@1": 1.0, "rsum": 6.0}
    metrics = {"coco": {**coco, "coco_1k_rsum": 530.0}, "retrieval": {"csd": whole}}
    run_of(tmp_path / "vse_infinity-seed-0", [], metrics)
    flags = [f"--out={tmp_path}", "--seeds", "0", "--rows", "VSE∞", "--no-run"]
    ablations.main(["--sweep=pcmepp_methods", *flags])
    header, _, row, blank, sides, _, below = (tmp_path / "table.md").read_text().splitlines()
    assert header == (
        "| | ECCV mAP@R | ECCV R-P | ECCV R@1 | CxC R@1 | 1K R@1 | 5K R@1 | 1K RSUM | seeds |"
    )
    assert row == "| VSE∞ | 1.0 | 11.0 | 21.0 | 31.0 | 41.0 | 51.0 | 530.0 | 1 |"
    assert not blank
    assert sides.startswith("| | ECCV mAP@R i2t / t2i | ECCV R-P i2t / t2i |")
    assert below.startswith("| VSE∞ | 0.0 / 2.0 | 10.0 / 12.0 |")


def test_curves_are_drawn_of_the_rows_that_are_finished(tmp_path):
    curves = Curves(
        "D", {"PCME": [(2, "D = 2"), (4, "D = 4")], "μ only": [(2, "none")]}, columns.CUB
    )
    settings = types.SimpleNamespace(out=tmp_path, seeds=(0, 1))
    for dim, seed, value in ((2, 0, 10.0), (2, 1, 14.0), (4, 0, 20.0)):
        own = {f"{s}_r_precision": value for s in ("i2t", "t2i")}
        run_of(tmp_path / f"d_{dim}-seed-{seed}", [dim, seed], {"retrieval": {"own": own}})
    found = ablations.points(curves, settings)
    assert list(found) == ["R-P i2t / t2i"]  # no run has the other column
    ((numbers, values),) = found["R-P i2t / t2i"].values()
    assert numbers == [2, 4]
    assert values[0].tolist() == [[10.0, 14.0], [10.0, 14.0]]
    assert values[1][:, 0].tolist() == [20.0, 20.0]
    axes = ablations.plot(curves, found).axes
    assert [axis.get_ylabel() for axis in axes] == ["R-P in %"] * 2
    assert axes[0].lines[0].get_ydata().tolist() == [12.0, 20.0]
