"""Bootstrap intervals: how far a number would move if other queries had been asked."""

import math
from typing import NamedTuple

import numpy as np

from zoo.report.style import with_minus

RESAMPLES = 500


class Estimate(NamedTuple):
    """A number, its interval, and of how many queries it is."""

    value: float
    low: float
    high: float
    n: int

    def text(self, form=".1f"):
        """`17.3 [15.1, 19.6]`, or that there is nothing to say."""
        if not math.isfinite(self.value):
            return "undefined"
        ends = ", ".join(with_minus(f"{end:{form}}") for end in (self.low, self.high))
        return f"{with_minus(f'{self.value:{form}}')} [{ends}]"


def bootstrap(statistic, *columns, resamples=RESAMPLES, seed=0, level=0.95):
    """A statistic of some queries with its percentile interval.

    Queries are drawn with replacement, the same for all columns. Draws follow from the seed and
    the number of queries alone, so statistics of the same queries are compared pair by pair.

    Args:
        statistic: function of the columns that gives a number; NaN where it is undefined, and such
            resamples are left out of the interval.
        columns: arrays with one row a query.
        resamples: how many times to draw.
        seed: of the draws.
        level: share of the resamples in the interval.

    Returns:
        An `Estimate`; its ends are NaN where no resample has a number.

    Raises:
        ValueError: if the columns are empty or differ in length, or `level` is not in (0, 1).

    Reference: Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13.
    """
    columns = [np.asarray(column) for column in columns]
    lengths = {len(column) for column in columns}
    if len(lengths) != 1 or not min(lengths):
        raise ValueError(f"`columns` must have one length of at least 1; received {lengths}")
    if not 0.0 < level < 1.0:
        raise ValueError(f"`level` must be in (0, 1); received {level}")
    (count,) = lengths
    generator = np.random.default_rng(seed)
    drawn = []
    for _ in range(resamples):
        rows = generator.integers(0, count, count)
        drawn.append(float(statistic(*(column[rows] for column in columns))))
    drawn = np.array(drawn)
    drawn = drawn[np.isfinite(drawn)]
    low = high = math.nan
    if len(drawn):
        low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(float(statistic(*columns)), float(low), float(high), count)


def mean(values):
    """The mean over rows that are numbers, for `bootstrap`: NaN rows are undefined queries."""
    values = np.asarray(values, float)
    known = np.isfinite(values)
    return values[known].mean() if known.any() else math.nan


def percent(values):
    """A share in percent, for `bootstrap` of booleans."""
    return 100.0 * np.mean(values)
