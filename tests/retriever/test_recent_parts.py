"""Parts of a gallery that were asked lately."""

import numpy as np
import pytest

from halo_search.retriever.parts import MOST_ITEMS, MOST_PARTS, RecentParts


class Part:
    def __init__(self, size, probes):
        self.size, self.probes = size, probes

    def __len__(self):
        return self.size


@pytest.fixture
def get():
    """A function that asks for a part by number, the numbers that were made, and the parts."""
    parts, made = RecentParts(), []

    def part(number, size=1, probes=None):
        def make():
            made.append(number)
            return Part(size, probes)

        return parts.get(np.array([number]), probes, make)

    return part, made, parts


def test_the_latest_stay(get):
    part, made, _ = get
    for number in range(MOST_PARTS):
        part(number)
    part(0)  # asked again: now 1 is the oldest
    part(MOST_PARTS)
    part(0)
    assert made == list(range(MOST_PARTS + 1))
    part(1)
    assert made[-1] == 1


def test_large_ones_drop_the_others_and_stay(get):
    part, made, _ = get
    part(0)
    part(1, MOST_ITEMS + 1)
    part(1, MOST_ITEMS + 1)
    assert made == [0, 1]
    part(0)
    assert made == [0, 1, 0]


def test_other_probes_and_changes_make_them_again(get):
    part, made, parts = get
    first = object()
    part(0, probes=first)
    part(0, probes=first)
    part(0, probes=object())
    assert made == [0, 0]
    parts.clear()
    part(0)
    assert made == [0, 0, 0]
