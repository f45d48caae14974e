import numpy as np
import pytest

from studies import set_algebra as regions

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dim", [2, 16])
def test_a_gaussians_own_region_holds_its_share(dim):
    mean, variance = RNG.normal(size=dim), np.exp(RNG.normal(size=dim))
    noise = RNG.normal(size=(20_000, dim))
    own = regions.mass_inside(mean, variance, [(mean, variance)], noise, 0.9)
    assert own == pytest.approx(0.9, abs=0.01)
    assert regions.mass_inside(mean, variance, [(mean, 100 * variance)], noise) == 1.0
    far = [(mean, variance), (mean + 100, variance)]
    assert regions.mass_inside(mean, variance, far, noise) == 0.0


def test_areas_of_circles_by_geometry():
    disc = regions.unit_disc(RNG, 40_000)
    assert np.mean(np.linalg.norm(disc, axis=1) < 0.5) == pytest.approx(0.25, abs=0.01)
    one = np.eye(2)
    origin = np.zeros(2)
    # A circle of half the radius inside, then the reverse: a quarter of the area.
    assert regions.area_inside(origin, one / 4, [(origin, one)], disc) == 1.0
    share = regions.area_inside(origin, one, [(origin, one / 4)], disc)
    assert share == pytest.approx(0.25, abs=0.01)
    # Two unit circles whose centres are one radius apart share 2π/3 − √3/2 of π.
    radius = np.sqrt(-2 * np.log(0.05))
    apart = (np.array([radius, 0.0]), one)
    lens = (2 * np.pi / 3 - np.sqrt(3) / 2) / np.pi
    assert regions.area_inside(origin, one, [apart], disc) == pytest.approx(lens, abs=0.01)
    first = (origin, one)
    assert regions.shared_area_inside(first, apart, first, disc) == 1.0
    assert regions.shared_area_inside(first, apart, (origin, 1e-4 * one), disc) < 0.05
    far = (np.array([100.0, 0.0]), one)
    assert np.isnan(regions.shared_area_inside(first, far, first, disc))
