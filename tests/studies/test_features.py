"""Each feature of the probability is left out, and taken alone."""

import pytest

from studies import features


def test_each_is_left_out_and_taken_alone():
    assert features.subsets(["a", "b"]) == {
        "all": ["a", "b"],
        "without a": ["b"],
        "without b": ["a"],
        "a alone": ["a"],
        "b alone": ["b"],
    }


@pytest.mark.very_slow  # draws the test split of Toy Birds
def test_the_table_has_both_directions_of_each(capsys):
    features.main(["toy_birds_pfe", "--per-class", "5", "--draws", "1"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")][1:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert {row[2] for row in rows} == {"t2i", "i2t"}
    assert {"all", "without z_score", "z_score alone"} < {row[0] for row in rows}
    assert all(-1 < float(row[3]) <= 1 for row in rows)
    everything = {row[2]: abs(float(row[4])) for row in rows if row[0] == "all"}
    assert max(everything.values()) < 0.2
