"""What is said of a preset's galleries is compared with what is so, in a small run."""

import pytest

from studies import preset_galleries
from studies.opened import some_of
from zoo import evaluation


@pytest.mark.very_slow  # what it measures with is asked in tests/confidence/test_calibrate.py
def test_every_gallery_is_asked_both_ways(monkeypatch, capsys):
    opened = evaluation.open_run

    def in_small(*given):
        model, split = opened(*given)
        return model, some_of(split, 120)

    monkeypatch.setattr(evaluation, "open_run", in_small)
    preset_galleries.main(["toy_birds_pfe", "--sizes", "60", "--draws", "2", "--training", "40"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]
    names = ["60", "120", "60, each twice", "120, 40 of training"]
    assert [row[0] for row in rows] == [name for name in names for _ in range(2)]
    assert [row[1] for row in rows] == ["t2i", "i2t"] * 4
    for row in rows:
        said, right, more, error = (float(cell.split()[0]) for cell in row[2:6])
        assert abs(said - right - more) <= 0.002
        assert 0 <= error <= 0.5
        assert abs(more) <= error + 0.001, "a mean is off by no more than its parts"
        assert 0 < float(row[7].split()[0]) <= 1
    assert "[" in rows[0][2], "of two draws, least and greatest"
    assert "[" not in rows[2][2]
    preset_galleries.main(["toy_birds_pfe", "--sizes", "30", "--draws", "1", "--halves"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    names = [line.split("|")[1].split(",")[0].strip() for line in lines[1:]]
    assert names == ["30", "30", "60", "60"]


@pytest.mark.very_slow  # as above
def test_galleries_of_classes_are_asked_about_their_own_photos_and_about_others(capsys):
    preset_galleries.main(["toy_birds_pfe", "--per-class", "5", "1000", "--draws", "1"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    names = [line.split("|")[1].strip() for line in lines[1:]]
    all_there = "1000 a class"  # which leaves no other photos
    assert names == [n for n in ("5 a class", "5 a class, other photos", all_there) for _ in "ab"]
