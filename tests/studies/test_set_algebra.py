"""Mixing and erasing, PCME's figure 8: which pairs are taken, and what is measured of them."""

from types import SimpleNamespace

import numpy as np
import pytest

from studies import set_algebra


def gaussians(means, log_variances):
    """Means `(pairs, 2)`, and one log variance for both dimensions of each."""
    return {
        "mean": np.array(means, float),
        "log_variance": np.repeat(np.array(log_variances, float)[:, None], 2, axis=1),
    }


class Plane:
    """Of two dimensions: the plane is the space."""

    def project(self, mean, log_variance):
        return mean, np.array([np.diag(np.exp(each)) for each in log_variance])


@pytest.fixture(scope="module")
def measured():
    """Pairs far from each other: the mix of the first is its originals, that of the second lies
    elsewhere, and that of the third is wide."""
    places = [[0, 0], [100, 0], [0, 100]]
    apart = [[0, 0], [100, 50], [0, 100]]
    embeddings = {
        "first": gaussians(places, [0.0, -2.0, 0.0]),
        "second": gaussians(places, [0.0, 2.0, 0.0]),
        "mix": gaussians(apart, [0.0, -1.0, 4.0]),
        "erased": gaussians(places, [4.0, -2.0, 6.0]),
    }
    algebra = set_algebra.Algebra(np.arange(3), np.arange(3), embeddings, {})
    return set_algebra.measure(algebra, Plane())


def test_a_mix_that_is_its_originals_lies_in_them(measured):
    np.testing.assert_allclose(measured["mix_area"][:2], [100, 0], atol=1)
    assert measured["covered"][0] == pytest.approx(100, abs=1)
    assert measured["mix_area"][2] < 10  # e⁴ as wide an area


def test_the_control_is_of_another_pair(measured):
    np.testing.assert_allclose(measured["mix_area_control"], 0, atol=1)


def test_the_original_lies_in_the_erased_one_and_not_the_other_way_around(measured):
    np.testing.assert_allclose(measured["original_in_erased"], 100, atol=1)
    np.testing.assert_allclose(measured["erased_in_original"], [2, 100, 0], atol=2)


def test_widths_are_compared_with_both_originals(measured):
    assert measured["wider_mix"].tolist() == [False, False, True]
    assert measured["wider_erased"].tolist() == [True, False, True]


def test_pairs_have_different_labels_and_pictures_of_their_own():
    labels = np.array([0, 0, 1, 1, 2, 0])
    pictures = (10 * np.arange(6, dtype="uint8")[:, None, None, None]) + np.zeros(
        (6, 8, 12, 3), "uint8"
    )
    shown = []

    def of_arrays(arrays):
        shown.append(arrays)
        return gaussians(np.zeros((len(arrays), 2)), np.zeros(len(arrays)))

    run = SimpleNamespace(
        seed=0,
        items=6,
        picture=lambda index: pictures[index],
        encoded=SimpleNamespace(
            records=SimpleNamespace(image_labels=labels),
            images=gaussians(np.arange(12).reshape(6, 2), np.zeros(6)),
        ),
        model=SimpleNamespace(tower=lambda side: SimpleNamespace(of_arrays=of_arrays)),
    )
    algebra = set_algebra.make(run)
    assert (labels[algebra.first] != labels[algebra.second]).all()
    assert len(algebra.first) < 3, "one pair of this seed has one label"
    mean = (pictures[algebra.first].astype(float) + pictures[algebra.second]) / 2
    np.testing.assert_array_equal(algebra.pictures["mix"], mean)
    np.testing.assert_array_equal(shown[0], algebra.pictures["mix"])
    lost = (algebra.pictures["erased"] != pictures[algebra.first]).any(-1).mean(axis=(1, 2))
    assert (lost[algebra.first > 0] > 0.1).all()


def test_areas_of_circles_by_geometry():
    disc = set_algebra.unit_disc(np.random.default_rng(0), 40_000)
    assert np.mean(np.linalg.norm(disc, axis=1) < 0.5) == pytest.approx(0.25, abs=0.01)
    one = np.eye(2)
    origin = np.zeros(2)
    # A circle of half the radius inside, then the reverse: a quarter of the area.
    assert set_algebra.area_inside(origin, one / 4, [(origin, one)], disc) == 1.0
    share = set_algebra.area_inside(origin, one, [(origin, one / 4)], disc)
    assert share == pytest.approx(0.25, abs=0.01)
    # Two unit circles whose centres are one radius apart share 2π/3 − √3/2 of π.
    radius = np.sqrt(-2 * np.log(0.05))
    apart = (np.array([radius, 0.0]), one)
    lens = (2 * np.pi / 3 - np.sqrt(3) / 2) / np.pi
    assert set_algebra.area_inside(origin, one, [apart], disc) == pytest.approx(lens, abs=0.01)
    first = (origin, one)
    assert set_algebra.shared_area_inside(first, apart, first, disc) == 1.0
    assert set_algebra.shared_area_inside(first, apart, (origin, 1e-4 * one), disc) < 0.05
    far = (np.array([100.0, 0.0]), one)
    assert np.isnan(set_algebra.shared_area_inside(first, far, first, disc))
