import pytest

from recipes import own_pairs
from zoo.errors import InputError


def test_data_that_are_not_there_leave_no_run_folder(tmp_path):
    out = tmp_path / "run"
    with pytest.raises(InputError, match="nope"):
        own_pairs.main(["--data-dir", str(tmp_path / "nope"), "--out", str(out)])
    assert not out.exists()
    out.mkdir()
    (out / "notes").write_text("mine")
    with pytest.raises(InputError, match="holds notes, which this program did not write"):
        own_pairs.main(["--data-dir", str(tmp_path / "nope"), "--out", str(out)])
    assert (out / "notes").read_text() == "mine"
