"""The planted errors fit the code as it is, and their summary counts them by room."""

from collections import Counter

from tools import mutants

ROOMS = {"models", "training", "confidence", "evaluation", "index", "retriever"}


def test_each_error_stands_once_in_its_file_and_changes_it():
    found = mutants.read(mutants.LIST)  # raises where an error's place is not there once
    by_room = Counter(mutant.room for mutant in found)
    assert min(by_room[room] for room in ROOMS) >= 10
    assert all(mutant.old != mutant.new for mutant in found)
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in found}) == len(found)
    for test in {test for mutant in found for test in mutant.tests}:
        file, _, name = test.partition("[")[0].partition("::")
        text = (mutants.ROOT / "tests" / file).read_text(encoding="utf-8")
        assert f"def {name}" in text, test


def test_an_error_for_which_no_test_runs_survives(tmp_path, monkeypatch):
    (tmp_path / "a.py").write_text("ONE = 1\n")
    monkeypatch.setattr(mutants, "_TREE", tmp_path, raising=False)
    planted = mutants.Mutant("a.py", ("tools/test_slow.py",), "ONE = 1", "ONE = 2")
    for code, expected in ((5, 0), (1, 1), (0, 0)):
        monkeypatch.setattr(mutants, "tried", lambda *_, found=code: (found, [], 0.0))
        assert mutants._planted(planted)[0] == expected
    assert (tmp_path / "a.py").read_text() == "ONE = 1\n"


def test_the_summary_counts_by_room():
    found = [
        mutants.Mutant(f"zoo/{room}/a.py", (), "a", "b") for room in ("data", "data", "search")
    ]
    found.append(mutants.Mutant("recipes/a.py", (), "a", "b"))
    assert mutants.shares(found, found[:1]) == {"data": 0.5, "recipes": 1.0, "search": 1.0}
    assert "data: 1 of 2 (50%)" in mutants.summary(found, found[:1])
