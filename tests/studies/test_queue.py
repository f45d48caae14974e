"""The queue of runs that every table may take: order, resumption, failures."""

import sys

import pytest

from studies import queue
from zoo.errors import InputError
from zoo.files import RunFolder


def task(out, code, after=None):
    return queue.Task(out, [sys.executable, "-c", code], after)


def test_what_is_finished_is_left_out_and_what_follows_another_comes_after_it(tmp_path):
    order = tmp_path / "order"
    note = f"open({str(order)!r}, 'a').write"
    done = tmp_path / "done"
    RunFolder.open(done, {"seed": 0}).finish({})
    queue.run_all(
        [
            task(tmp_path / "second", f"{note}('second ')", tmp_path / "first"),
            task(done, f"{note}('again ')"),
            task(tmp_path / "first", f"import time; time.sleep(.2); {note}('first ')"),
        ],
        jobs=2,
    )
    assert order.read_text() == "first second "


def test_a_failed_run_is_named_after_the_others_have_ended(tmp_path):
    ran = tmp_path / "ran"
    failing = task(tmp_path / "bad", "raise SystemExit('no such data')")
    other = task(tmp_path / "good", f"open({str(ran)!r}, 'w')")
    with pytest.raises(InputError, match=r"1 of 2 runs failed, see .*bad\.log"):
        queue.run_all([failing, other])
    assert ran.exists()
    assert "no such data" in (tmp_path / "bad.log").read_text()
