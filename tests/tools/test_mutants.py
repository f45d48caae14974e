"""The planted errors fit the code as it is, and their summary counts them."""

from collections import Counter

from tools import mutants


def test_each_error_stands_once_in_its_file_and_changes_it():
    found = mutants.read(mutants.LIST)  # raises where an error's place is not there once
    assert len(found) >= 60
    assert min(Counter(mutant.paper for mutant in found).values()) >= 10
    assert all(mutant.old != mutant.new for mutant in found)
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in found}) == len(found)
    for file in {test.partition("::")[0] for mutant in found for test in mutant.tests}:
        assert (mutants.ROOT / "tests" / file).exists(), file


def test_the_summary_counts_by_paper_and_names_survivors():
    first, second = (
        mutants.Mutant("pcme", "zoo/a.py", "x + y", "x - y", ("test_a.py",)),
        mutants.Mutant("daa", "zoo/b.py", "x * y", "x", ("test_b.py",)),
    )
    text = mutants.summary(
        [first, second, second], [second], ["tests/test_a.py", "tests/test_b.py"]
    )
    assert text.splitlines() == [
        "pcme: 1 of 1",
        "daa: 1 of 2",
        "2 of 3 planted errors are caught (67 %)",
        "survives: zoo/b.py: `x * y` → `x`",
        "caught most: tests/test_a.py 1, tests/test_b.py 1",
    ]
