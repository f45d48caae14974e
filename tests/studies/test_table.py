"""Tables over seeds, from the results that lie in run folders."""

from types import SimpleNamespace

import pytest

from studies import ablations, seed_table
from zoo.errors import InputError
from zoo.models.run_folder import RunFolder


def results(i2t, uncertain=True):
    found = {"retrieval": {"cosine": {"i2t_r_precision": i2t, "t2i_r_precision": 2 * i2t}}}
    if uncertain:
        worth = {"spearman_of_bins": -i2t / 100}
        found["uncertainty"] = {"i2t": worth, "t2i": worth}
    return found


def finish(out, name, seed, metrics):
    RunFolder.open(seed_table.folder(out, name, seed), {"seed": seed}).finish(metrics)


def test_means_and_deviations_of_the_finished_runs(tmp_path):
    settings = SimpleNamespace(out=tmp_path, seeds=(0, 1, 2))
    for seed, value in ((0, 10.0), (1, 14.0)):
        finish(tmp_path, "A: with α = 0.1", seed, results(value))
    finish(tmp_path, "B", 2, results(1.0, uncertain=False))
    values = [
        lambda found, side=side: found["retrieval"]["cosine"][f"{side}_r_precision"]
        for side in seed_table.DIRECTIONS
    ]
    columns = [seed_table.Column("R-P i2t / t2i", tuple(values)), seed_table.bins()]
    assert seed_table.markdown(["A: with α = 0.1", "B", "never run"], columns, settings) == (
        "| | R-P i2t / t2i | bins i2t / t2i | seeds |\n"
        "|---|---|---|---|\n"
        "| A: with α = 0.1 | 12.0 ± 2.8 / 24.0 ± 5.7 | −0.12 ± 0.03 / −0.12 ± 0.03 | 2 |\n"
        "| B | 1.0 / 2.0 |  | 1 |\n"
    )


def test_a_table_says_which_runs_are_missing(tmp_path, capsys):
    flags = ["--sweep=pcmepp_methods", "--rows", "PCME++", "InfoNCE", "--no-run"]
    flags += ["--seeds", "0", "1", f"--out={tmp_path / 'runs'}"]
    nothing = r"expected finished runs; missing: PCME\+\+ \(seed 0, 1\); InfoNCE \(seed 0, 1\)"
    with pytest.raises(InputError, match=nothing):
        ablations.main(flags)
    RunFolder.open(tmp_path / "runs" / "pcmepp-seed-1", {}).finish(results(1.0))
    ablations.main(flags)
    printed = list(filter(None, capsys.readouterr().out.splitlines()))
    said = "Missing: PCME++ (seed 0); InfoNCE (seed 0, 1). Train them without `--no-run`."
    assert printed[-1] == said
    assert any(line.startswith("| PCME++ | 1.0 / 2.0") for line in printed)
    assert sum(line.startswith("|---") for line in printed) == 1, "no table of COCO's benchmark"


def test_every_row_is_run_with_every_seed(tmp_path):
    calls = []
    rows = {"one": seed_table.Row(calls.append, ("--dim=3",)), "two": seed_table.Row(calls.append)}
    seed_table.run_rows(rows, SimpleNamespace(out=tmp_path, seeds=(4, 5)), ("--smoke",))
    assert calls == [
        ["--dim=3", "--smoke", "--seed=4", f"--out={tmp_path / 'one-seed-4'}"],
        ["--smoke", "--seed=4", f"--out={tmp_path / 'two-seed-4'}"],
        ["--dim=3", "--smoke", "--seed=5", f"--out={tmp_path / 'one-seed-5'}"],
        ["--smoke", "--seed=5", f"--out={tmp_path / 'two-seed-5'}"],
    ]
