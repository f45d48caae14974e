"""The alarm: rare while the promise is kept, soon when it is broken, never by looking often."""

import numpy as np
import pytest
from mapie.exchangeability_testing.risk_monitoring import RiskMonitoring

from zoo.confidence import monitored
from zoo.confidence.monitor import LEVEL, wealth

PROMISED, STREAMS, ANSWERS = 0.2, 1000, 3000


@pytest.fixture(scope="module")
def kept():
    """Streams whose errors are exactly as frequent as promised, and their largest wealth."""
    rng = np.random.default_rng(0)
    wrong = rng.random((STREAMS, ANSWERS)) < PROMISED
    return wealth(wrong, np.full(wrong.shape, PROMISED))


def test_false_alarms_are_at_most_the_level(kept):
    assert kept.shape == (STREAMS, ANSWERS)
    false = (kept.max(axis=1) >= 1 / LEVEL).mean()
    assert false <= LEVEL
    assert false > 0  # or the level is not used at all
    assert kept[:, -1].mean() < 1.5  # a supermartingale's mean does not grow


@pytest.mark.parametrize(("before", "most"), [(0, 60), (1000, 300)])
def test_twice_the_promised_error_is_noticed(before, most):
    rng = np.random.default_rng(1)
    rates = np.where(np.arange(before + 1000) < before, PROMISED, 2 * PROMISED)
    wrong = rng.random((300, len(rates))) < rates
    reached = wealth(wrong, np.full(wrong.shape, PROMISED)) >= 1 / LEVEL
    assert reached[:, :before].any(axis=1).mean() <= LEVEL
    delays = np.where(reached.any(axis=1), reached.argmax(axis=1) + 1 - before, np.inf)
    delays = delays[delays > 0]
    print(f"median delay {np.median(delays):.0f}, 90 % within {np.quantile(delays, 0.9):.0f}")
    assert np.median(delays) < most


def test_promises_that_differ_by_answer():
    rng = np.random.default_rng(2)
    said = rng.random((300, 1500))
    right = wealth(rng.random(said.shape) < said, said)
    assert (right.max(axis=1) >= 1 / LEVEL).mean() <= LEVEL
    worse = wealth(rng.random(said.shape) < np.minimum(1, said + 0.15), said)
    assert (worse[:, -1] >= 1 / LEVEL).mean() > 0.95


def test_mapie_raises_its_alarm_too_and_later():
    rng = np.random.default_rng(3)
    ours, theirs = [], []
    for _ in range(9):
        wrong = rng.random(600) < 2 * PROMISED
        ours.append(monitored(wrong, PROMISED).at)
        other = RiskMonitoring("accuracy", test_level=LEVEL, threshold=PROMISED, warn=False)
        other.update(np.ones(len(wrong), int), 1 - wrong.astype(int))
        bound = other.online_risk_lower_bound_sequence_history
        theirs.append(int(np.argmax(bound > PROMISED)) + 1 if (bound > PROMISED).any() else 601)
    assert None not in ours
    assert np.median(ours) <= np.median(theirs)


def test_what_does_not_fit_is_named():
    with pytest.raises(ValueError, match="promised"):
        monitored([True], 1.5)
    with pytest.raises(ValueError, match="level"):
        monitored([True], 0.2, level=0)
    with pytest.raises(ValueError, match="wrong"):
        monitored([], 0.2)
