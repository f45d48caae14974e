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
