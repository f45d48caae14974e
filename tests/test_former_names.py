"""Names that the last version had are what they are called now, and warn."""

import pytest

import zoo
from zoo import evaluation, report, training

FORMER = (
    (training, "cosine", training.cosine_decay),
    (training, "cosine_after_a_twentieth", training.cosine_decay_after_a_twentieth),
    (report, "train", training.train),
    (report, "finish", training.finish),
    (report, "finish_ensemble", training.finish_ensemble),
    (report, "show", training.show),
    (report, "print_results", evaluation.print_results),
    (report, "show_results", evaluation.show_results),
)


@pytest.mark.parametrize(("room", "name", "now"), FORMER)
def test_a_former_name_warns_and_works(room, name, now):
    with pytest.warns(DeprecationWarning, match=rf"{room.__name__}\.{name} is zoo\.\w+\.\w+ now"):
        found = getattr(room, name)
    if name in ("train", "finish"):  # they drew the report
        assert found.keywords == {"report": report.draw_run}
        found = found.func
    assert found is now


@pytest.mark.parametrize("room", [zoo.training, zoo.report])
def test_another_name_is_none(room):
    with pytest.raises(AttributeError, match=f"'{room.__name__}' has no attribute 'nothing'"):
        _ = room.nothing
