import json

import pytest

from tools import kept_runs, models_page
from zoo.errors import InputError
from zoo.files import RunFolder


def finished(folder, **metrics):
    run = RunFolder.open(folder, {"seed": 1, "out": str(folder), "data_dir": "/mnt/birds"})
    own = {f"{d}_{m}": 5.0 for d in ("i2t", "t2i") for m in ("r_precision", "recall@1")}
    run.finish({"retrieval": {"csd": own | {"rsum": 20.0}}, "split": "birds", **metrics})
    return run


def test_a_kept_run_makes_the_table_of_the_run(tmp_path):
    curve = {"bins": list(range(10)), "curve": list(range(1000))}
    run = finished(tmp_path / "runs" / "one", uncertainty={"i2t": curve}, seconds=60.0)
    kept_runs.main([str(run.path), f"--out={tmp_path / 'kept'}"])
    kept = RunFolder.existing(tmp_path / "kept" / "one")
    assert kept.metrics["uncertainty"]["i2t"] == {"bins": list(range(10))}
    assert kept.settings["data_dir"] == "birds"
    assert kept.settings["seed"] == 1
    assert models_page.page([kept]) == models_page.page([run])
    for file in kept.path.iterdir():
        assert str(tmp_path) not in file.read_text(), file


def test_keep_refuses_what_it_would_mix_up(tmp_path):
    first, second = finished(tmp_path / "a" / "one"), finished(tmp_path / "b" / "one")
    with pytest.raises(InputError, match="two runs are called one"):
        kept_runs.main([str(first.path), str(second.path), f"--out={tmp_path / 'kept'}"])
    half = RunFolder.open(tmp_path / "half", {})
    with pytest.raises(InputError, match="expected a finished run"):
        kept_runs.main([str(half.path), f"--out={tmp_path / 'kept'}"])
    assert not (tmp_path / "kept").exists()


def test_flags_of_a_command_lose_their_folders(tmp_path):
    command = {"command": "recipes/x.py --out=/tmp/x/one --weights /mnt/w.h5 --rate 0.1"}
    assert kept_runs.without_places(command) == {
        "command": "recipes/x.py --out=one --weights w.h5 --rate 0.1"
    }
    json.dumps(kept_runs.without_places({"a": [1, None, "b c"]}))
