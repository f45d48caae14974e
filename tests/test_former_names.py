"""Names that the last version had are what they are called now, and warn."""

import pytest

from zoo import training

FORMER = (
    (training, "cosine", training.cosine_decay),
    (training, "cosine_after_a_twentieth", training.cosine_decay_after_a_twentieth),
)


@pytest.mark.parametrize(("room", "name", "now"), FORMER)
def test_a_former_name_warns_and_works(room, name, now):
    with pytest.warns(DeprecationWarning, match=rf"{room.__name__}\.{name} is zoo\.\w+\.\w+ now"):
        found = getattr(room, name)
    assert found is now


def test_another_name_is_none():
    with pytest.raises(AttributeError, match=r"'zoo\.training' has no attribute 'nothing'"):
        _ = training.nothing
