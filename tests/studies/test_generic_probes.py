"""The study of probes of other photos, on made vectors in the layout of the real ones."""

import numpy as np
import pytest

from studies import generic_probes as study

DIM = 16


@pytest.fixture(scope="module")
def world():
    """Photos of which a caption each is known, and what fits is what is near."""
    rng = np.random.default_rng(0)
    images = rng.normal(size=(320, DIM)).astype("f4")
    captions = (images + 1.1 * rng.normal(size=images.shape)).astype("f4")
    rows = np.arange(len(images))
    fit = study._fit(({"mean": images}, {"mean": captions}), rows, captions, rows, rows)
    sides = {"mean": images}, {"mean": captions}
    return study.World("made", "Made", *sides, rows, fit, None, 120, 30)


@pytest.fixture(scope="module", params=["alike", "other contents"])
def found(world, request):
    return list(study.galleries(world, request.param, 0))


def test_a_gallery_is_judged_alone_and_with_own_photos(found):
    assert {row[3] for row, _ in found} == {"t2i", "i2t"}
    for _, one in found:
        said, low, high = one.judged(0.0, 0.3)
        assert low < said < high
        assert 0 < one.true < 1


def test_a_shift_lowers_what_is_said_and_a_spread_widens_it(found):
    one = next(one for row, one in found if "+" not in row[-1])
    plain, lower, wider = (one.judged(*of) for of in ((0.0, 0.1), (-0.5, 0.1), (0.0, 2.0)))
    assert lower[0] < plain[0] == wider[0]
    assert wider[1] < plain[1] < plain[2] < wider[2]


def test_models_and_their_rows_count_alike():
    few = [study.Answers(0.5, shift, None) for shift in (-0.2, -0.4)]
    many = [study.Answers(0.5, -0.9, None)] * 50
    assert study.elsewhere([[few], [many]]) == pytest.approx((-0.6, 0.3))
