"""Quantiles of Student's t, without SciPy where there are many degrees of freedom."""

import statistics

MANY = 30  # degrees of freedom, from which the expansion is exact to seven digits


def students_quantile(share, freedom):
    """What a t with as many degrees of freedom as `freedom` stays below with probability `share`.

    From 30 degrees of freedom by Cornish and Fisher's expansion, so that an answer does not wait
    for the import of `scipy.special`, which takes longer than the search; of fewer by SciPy.

    Reference: Abramowitz and Stegun, "Handbook of Mathematical Functions", 1964, formula 26.7.5.
    """
    if freedom < MANY:
        from scipy.special import stdtrit

        return float(stdtrit(freedom, share))
    x = statistics.NormalDist().inv_cdf(share)
    terms = (
        x,
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
    )
    return sum(term / freedom**power for power, term in enumerate(terms))
