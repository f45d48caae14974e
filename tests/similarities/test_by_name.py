"""Similarities by name."""

import pytest

from zoo import similarities


@pytest.mark.parametrize("name", similarities.NAMES)
def test_every_name_leads_to_a_layer_and_back(name):
    assert similarities.name_of(similarities.get(name)) == name


def test_a_square_ranks_as_its_root():
    assert similarities.name_of(similarities.SquaredEuclidean()) == "mean"
    assert similarities.name_of(similarities.SquaredWasserstein2()) == "wasserstein_2"


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="`name` must be one of"):
        similarities.get("hamming")
