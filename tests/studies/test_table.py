"""Tables over seeds, from the results that lie in run folders."""

import pytest

from studies import birds_table, gaussian_table, pcmepp_table, seed_table
from zoo.files import RunFolder
from zoo.plots import style

pytestmark = pytest.mark.usefixtures("run_eagerly")

AREAS = (0.08, 0.12, 0.16, 0.3)  # of crop_ambiguity.py on Toy Scenes


def results(i2t, uncertain=True):
    found = {"retrieval": {"cosine": {"i2t_r_precision": i2t, "t2i_r_precision": 2 * i2t}}}
    if uncertain:
        worth = {"spearman_of_bins": -i2t / 100}
        found["uncertainty"] = {"i2t": worth, "t2i": worth}
    return found


def finish(out, name, seed, metrics):
    RunFolder.open(seed_table.folder(out, name, seed), {"seed": seed}).finish(metrics)


def test_means_and_deviations_of_the_finished_runs(tmp_path):
    settings = seed_table.TableSettings(out=tmp_path, seeds=(0, 1, 2))
    for seed, value in ((0, 10.0), (1, 14.0)):
        finish(tmp_path, "A: with α = 0.1", seed, results(value))
    finish(tmp_path, "B", 2, results(1.0, uncertain=False))
    columns = [seed_table.retrieval("r_precision", "R-P"), seed_table.bins()]
    assert seed_table.markdown(["A: with α = 0.1", "B", "never run"], columns, settings) == (
        "| | R-P i2t / t2i | bins i2t / t2i | seeds |\n"
        "|---|---|---|---|\n"
        "| A: with α = 0.1 | 12.0 ± 2.8 / 24.0 ± 5.7 | −0.12 ± 0.03 / −0.12 ± 0.03 | 2 |\n"
        "| B | 1.0 / 2.0 |  | 1 |\n"
    )


def test_names_that_differ_in_signs_have_folders_of_their_own(tmp_path):
    names = (*birds_table.ROWS, *gaussian_table.ROWS, *pcmepp_table.ROWS)
    folders = {name: seed_table.folder(tmp_path, name, 0).name for name in names}
    assert folders["PCME++"] == "pcmepp-seed-0" != folders["PCME"]
    assert len(set(folders.values())) == len(set(names))


def test_every_row_is_run_with_every_seed(tmp_path):
    calls = []
    rows = {"one": seed_table.Row(calls.append, ("--dim=3",)), "two": seed_table.Row(calls.append)}
    seed_table.run_rows(rows, seed_table.TableSettings(out=tmp_path, seeds=(4, 5)), ("--smoke",))
    assert calls == [
        ["--dim=3", "--smoke", "--seed=4", f"--out={tmp_path / 'one-seed-4'}"],
        ["--smoke", "--seed=4", f"--out={tmp_path / 'two-seed-4'}"],
        ["--dim=3", "--smoke", "--seed=5", f"--out={tmp_path / 'one-seed-5'}"],
        ["--smoke", "--seed=5", f"--out={tmp_path / 'two-seed-5'}"],
    ]


@pytest.mark.very_slow  # a run is asked of its crops in tests/recipes/test_triplet_training.py
def test_crops_are_asked_of_the_models_of_the_same_seed(tmp_path, monkeypatch, capsys):
    trained = []
    rows = {name: seed_table.Row(trained.append) for name in gaussian_table.ROWS}
    monkeypatch.setattr(gaussian_table, "ROWS", rows)
    share = {"crop_a": 0.5, "crop_c": 0.6, "caption_a": 0.7, "caption_c": 0.8}

    def ask(flags):
        given = dict(flag.removeprefix("--").split("=") for flag in flags)
        models = [flag.partition("=")[2] for run in trained for flag in run if "--out=" in flag]
        assert given["model"] in models
        assert given["model"].endswith(f"seed-{given['seed']}")
        table = [{"largest_area": a, "triplets": 9, "selection": share} for a in AREAS]
        RunFolder.open(given["out"], given).finish({"crop_triplets": table})

    monkeypatch.setattr(gaussian_table.crop_ambiguity, "main", ask)
    monkeypatch.setattr(style.save, "__defaults__", (30,))  # what is drawn is not looked at
    gaussian_table.main([f"--out={tmp_path}", "--seeds", "3", "7"])
    text = (tmp_path / "table.md").read_text()
    assert text in capsys.readouterr().out
    cell = "50.0 ± 0.0 / 60.0 ± 0.0 / 70.0 ± 0.0 / 80.0 ± 0.0"
    assert text.count(cell) == len(AREAS) * len(gaussian_table.ASKED)
    figures = {f"{'_'.join(name.split())}_selection_accuracy.png" for name in gaussian_table.ASKED}
    assert {path.name for path in tmp_path.glob("*.png")} == figures


@pytest.mark.parametrize("name", gaussian_table.ROWS)
def test_the_rows_are_recipes(name):
    with pytest.raises(SystemExit) as end:
        gaussian_table.ROWS[name].main(["--help"])
    assert end.value.code == 0


def test_several_at_a_time_are_commands_in_the_order_of_what_they_need(tmp_path, monkeypatch):
    waiting = []
    monkeypatch.setattr(seed_table.queue, "run_all", lambda tasks, jobs: waiting.extend(tasks))
    settings = birds_table.Settings(out=tmp_path, seeds=(3,), jobs=2)
    seed_table.run_rows(birds_table.ROWS, settings, birds_table.common(settings))
    outs = {task.out: task for task in waiting}
    assert len(outs) == len(birds_table.ROWS)
    pfe = outs[seed_table.folder(tmp_path, "PFE over InfoNCE", 3)]
    assert pfe.after in outs
    assert f"--points={pfe.after}" in pfe.command
    assert pfe.command[1].endswith("recipes/birds.py")
    assert seed_table.command_of(gaussian_table.main)[1:] == ["-m", "studies.gaussian_table"]
