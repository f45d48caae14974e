"""Interval estimates and rank correlation, from SciPy."""

import math
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from halo_search.embeddings import checks

RESAMPLES = 500  # of the bootstrap
_TAIL = (1 - 0.95) / 2  # beyond each end of an interval
_RESAMPLED_AT_ONCE = 2**20  # numbers of one column; more queries are resampled in more steps


class Estimate(NamedTuple):
    """A number with its interval and the number of queries behind it; NaN where there is none.

    ```python
    zoo.metrics.bootstrap(np.mean, np.array([0.0, 1.0, 1.0])).text()
    ```
    """

    value: float
    low: float
    high: float
    n: int

    def text(self, form: str = ".1f") -> str:
        """The number as `17.3 [15.1, 19.6]`, or `undefined`."""
        if not math.isfinite(self.value):
            return "undefined"
        value, low, high = (f"{number:{form}}".replace("-", "−") for number in self[:3])
        return f"{value} [{low}, {high}]"

    def scaled(self, factor: float) -> "Estimate":
        """The estimate of `factor` times the number, such as 100 for percent."""
        return Estimate(self.value * factor, self.low * factor, self.high * factor, self.n)


def bootstrap(
    statistic: Callable[..., float], *columns: ArrayLike, resamples: int = RESAMPLES, seed: int = 0
) -> Estimate:
    """Percentile bootstrap interval of a statistic of queries, of 95 %.

    Queries are resampled with replacement, the same for all columns. The resamples depend on the
    seed and the number of queries alone, so statistics of the same queries are paired.

    ```python
    bootstrap(np.mean, [1.0, 2.0, 4.0]).text()  # 2.3 [1.2, 4.0]
    ```

    Args:
        statistic: function of the columns that returns a number. It may return NaN; such resamples
            are left out of the interval.
        columns: arrays `(queries,)`. SciPy hands all of them over in their common dtype.
        resamples, seed: of the resampling.

    Returns:
        An `Estimate`. Both ends are NaN where no resample has a number. The interval of a single
        query is its value.

    Raises:
        ValueError: if the columns are empty or differ in length.
    Relations: the percentile method of `scipy.stats.bootstrap(paired=True)`, which gives NaN as
        soon as one resample is undefined, and refuses a single query.
    """
    columns = [np.asarray(column) for column in columns]
    lengths = {len(column) for column in columns}
    if len(lengths) != 1 or not min(lengths):
        raise ValueError(f"`columns` must have one length of at least 1; received {lengths}")
    (count,) = lengths
    value = float(statistic(*columns))
    if count == 1:
        return Estimate(value, value, value, count)
    with warnings.catch_warnings():
        # Of a resample that has no number: it is left out below.
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        resampled = stats.bootstrap(
            columns,
            statistic,
            n_resamples=resamples,
            batch=max(1, _RESAMPLED_AT_ONCE // count),
            vectorized=False,
            paired=True,
            method="percentile",
            rng=np.random.default_rng(seed),
        )
    estimates = resampled.bootstrap_distribution
    estimates = estimates[np.isfinite(estimates)]
    if not len(estimates):
        return Estimate(value, math.nan, math.nan, count)
    low, high = np.quantile(estimates, [_TAIL, 1 - _TAIL])
    return Estimate(value, float(low), float(high), count)


def nan_mean(values):
    """The mean of the numbers that are finite; NaN, without a warning, if there are none."""
    values = np.asarray(values, float)
    finite = np.isfinite(values)
    return values[finite].mean() if finite.any() else math.nan


def percentage(values):
    """The mean of shares or booleans, in percent."""
    return 100.0 * np.mean(values)


def wilson_interval(successes: ArrayLike, counts: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Wilson score intervals of several shares, of 95 %: lower ends, upper ends, in [0, 1]. Raises
    ValueError if the lengths differ, or a share is not in [0, 1].

    ```python
    low, high = wilson_interval([8, 1], [10, 10])  # [0.49, 0.02], [0.94, 0.40]
    ```
    """
    ends = [
        stats.binomtest(int(k), int(n)).proportion_ci(method="wilson")
        for k, n in zip(successes, counts, strict=True)
    ]
    low, high = np.array(ends, float).reshape(-1, 2).T
    return low, high


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """Spearman's rank correlation, in [−1, 1], ties at their average; NaN of a constant. Raises
    ValueError if lengths differ, there are fewer than two, or a number is not finite.

    ```python
    spearman([0.1, 0.2, 0.3], [1, 4, 9])  # 1.0
    ```
    """
    first = checks.vector(first, "first")
    second = checks.vector(second, "second", len(first))
    if len(first) < 2:
        raise ValueError(f"`first` must hold at least two numbers; received {len(first)}")
    if not np.ptp(first) or not np.ptp(second):
        return math.nan
    return float(stats.spearmanr(first, second).statistic)
