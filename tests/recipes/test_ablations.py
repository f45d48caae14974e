"""Sweeps of ablations: their flags are real ones, and what is finished is not run again."""

import sys

import pytest

import ablations
import pcme_cub
from seed_table import Row
from zoo import cli
from zoo.files import RunFolder


@pytest.mark.parametrize("sweep", ablations.SWEEPS)
def test_every_row_is_a_run_of_its_own(sweep):
    rows = ablations.SWEEPS[sweep]
    settings = [
        cli.parse(sys.modules[row.main.__module__].Settings, list(row.flags))
        for row in rows.values()
    ]
    assert len({repr(one) for one in settings}) == len(rows)


def test_all_combinations_are_there():
    flags = {"KL": "--kl-weight=0", "uniformity": "--uniformity-weight=0"}
    assert ablations.with_and_without(flags) == {
        "KL, uniformity": [],
        "uniformity": ["--kl-weight=0"],
        "KL": ["--uniformity-weight=0"],
        "none of them": ["--kl-weight=0", "--uniformity-weight=0"],
    }


def test_heads_are_built_as_the_flags_say():
    settings = cli.parse(pcme_cub.Settings, ["--no-variance-attention", "--mean-only"])
    assert settings.head["covariance"] is None
    assert not settings.head["variance_attention"]
    with pytest.raises(SystemExit):
        cli.parse(pcme_cub.Settings, ["--no-variance-attention", "--squash-variance"])


def test_a_sweep_goes_on_where_it_was_and_ends_in_its_table(tmp_path, monkeypatch, capsys):
    calls = []

    def main(flags):
        calls.append(flags)
        value = 10.0 + len(calls)
        if len(calls) == 3:
            raise KeyboardInterrupt
        out = next(flag.partition("=")[2] for flag in flags if flag.startswith("--out="))
        run = RunFolder.open(out, {"flags": [f for f in flags if "out=" not in f]})
        if not run.finished:
            own = {
                f"{side}_{name}": value
                for side in ("i2t", "t2i")
                for name in ("r_precision", "recall@1")
            }
            run.finish({"retrieval": {"csd": {**own, "rsum": value}}, "seconds": 60.0})

    rows = {"one": Row(main), "two": Row(main, ("--dim=2",))}
    monkeypatch.setitem(ablations.SWEEPS, "pcme_covariance", rows)
    arguments = ["--sweep=pcme_covariance", f"--out={tmp_path}", "--seeds", "0", "1", "--smoke"]
    arguments += ["--also", "image-weights=none", "held-out=val1"]
    with pytest.raises(KeyboardInterrupt):
        ablations.main(arguments)
    ablations.main(arguments)
    also = ["--image-weights=none", "--held-out=val1"]
    assert calls[1] == ["--dim=2", "--smoke", *also, "--seed=0", f"--out={tmp_path / 'two-seed-0'}"]
    table = (tmp_path / "table.md").read_text()
    assert table in capsys.readouterr().out
    first, second = table.splitlines()[2:]
    # Both seeds of a row; the first row's first seed still has the results of the first call.
    assert first.startswith("| one | 13.5 ± 3.5 / 13.5 ± 3.5 |")
    assert first.endswith("| 1.0 ± 0.0 | 2 |")
    assert second.startswith("| two |")
    ablations.main([*arguments[:2], "--rows", "two", "--no-run"])
    assert "| one |" not in (tmp_path / "table.md").read_text()


def test_a_sweep_must_be_named(capsys):
    for flags in ([], ["--sweep=pcme"], ["--sweep=dive_sets", "--rows", "K = 99"]):
        with pytest.raises(SystemExit) as stopped:
            ablations.main(flags)
        assert stopped.value.code == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1
