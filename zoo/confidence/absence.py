"""Whether anything in the gallery matches: p-values, and batches of them."""

import numpy as np
from scipy.stats import false_discovery_control

from zoo.confidence import checks


def absence_p_values(confidence, absent_confidence, growth=1.0):
    """p-values of "nothing in the gallery matches this query".

    The calibration is a world in which it is true: the confidences c_i of queries whose matches
    were taken out of the gallery (`without_matches`). Then p = (1 + #{c_i ≥ c}) / (n + 1). A query
    is answered if and only if p ≤ error: then of the queries that nothing matches a share `error`
    at most is answered.

    Proof sketch. If nothing matches, c and the c_i are exchangeable, so the place of c among the
    n + 1 is uniform, and P(p ≤ a) ≤ a; ties only raise p.

    Args:
        confidence: `(Q,)`, higher is surer, of any kind: a probability, the best score.
        absent_confidence: `(n,)`, the same quantity of calibration queries without their matches.
        growth: number of items now over that of the calibration. The best of N'/N times as many
            items that do not match is that much likelier to look like a match:
            p' = 1 − (1 − p)^(N'/N).

    Returns:
        `(Q,)` in [1 / (n + 1), 1]; small means that something matches.

    Raises:
        ValueError: if something is not finite, or `growth` is not positive.

    Assumptions: queries that nothing matches are exchangeable with the calibration queries after
        their matches were taken out: the same kind of questions, about things that are missing.

    Reference: Bates et al., "Testing for outliers with conformal p-values", Annals of Statistics
        2023.
    """
    confidence = checks.vector(confidence, "confidence")
    absent = np.sort(checks.vector(absent_confidence, "absent_confidence"))
    if not (np.isfinite(growth) and growth > 0):
        raise ValueError(f"`growth` must be a positive number; received {growth}")
    at_least = len(absent) - np.searchsorted(absent, confidence, side="left")
    p_values = (1 + at_least) / (len(absent) + 1)
    return (
        p_values if growth == 1 else -np.expm1(growth * np.log1p(-np.minimum(p_values, 1 - 1e-15)))
    )


def benjamini_hochberg(p_values, error):
    """Which of a batch of queries to answer, so that few of the answers are for absent things.

    With m queries and the p-values sorted, the first j are answered, where j is the last with
    p_(j) ≤ error · j / m. Among the answered the expected share of queries that nothing matches is
    then at most `error`.

    Proof sketch. Conformal p-values of one calibration set depend on each other positively (PRDS),
    under which Benjamini and Hochberg's procedure holds its level.

    Args:
        p_values: `(Q,)` in [0, 1], of `absence_p_values`.
        error: in (0, 1).

    Returns:
        `(Q,)` booleans, true where something matches.

    Raises:
        ValueError: if a p-value is not in [0, 1], or `error` is not in (0, 1).

    Assumptions: those of `absence_p_values`.

    Reference: Benjamini and Hochberg, "Controlling the False Discovery Rate", 1995; Bates et al.,
        2023, theorem 2.
    """
    error = checks.share(error, "error")
    p_values = checks.vector(p_values, "p_values")
    if (p_values < 0).any() or (p_values > 1).any():
        raise ValueError("`p_values` must be in [0, 1]")
    return false_discovery_control(p_values, method="bh") <= error * (1 + 1e-12)
