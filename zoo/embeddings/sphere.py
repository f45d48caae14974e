"""Normalisers of two distributions on the unit sphere, in closed form for any dimension.

Both are given as the logarithm of the density over that of the uniform distribution, so that a
constant of the dimension, which may be thousands, costs no digits. They are computed in float64
where the backend has it: in float32 the terms of D = 4,096 alone are off by 1e-3.
"""

import math

import keras
from keras import ops

_FIRST_ORDER = 10.0  # Debye's expansion has an error below 1e-7 from here on
_SHIFT = 8  # steps of the recurrence under Stirling's series


def von_mises_fisher_log_constant(concentration, dim):
    """log C_D(κ) − log C_D(0) + κ of the von Mises–Fisher density C_D(κ) exp(κ μᵀx).

    So that the log density over the uniform one is κ (μᵀx − 1) + this, without the cancellation of
    κ μᵀx against log I_ν(κ) ≈ κ.

    Args:
        concentration: κ ≥ 0, `(batch,)`.
        dim: D ≥ 2.

    Returns:
        float32 `(batch,)`, 0 at κ = 0.

    Relations: C_D(κ) = κ^ν / ((2π)^(D/2) I_ν(κ)), ν = D/2 − 1. log(κ^−ν I_ν(κ)) is Debye's uniform
        expansion, s − ν log(ν + s) − ½ log s + log(1 + u₁ + u₂ + u₃) − ½ log 2π with
        s = √(ν² + κ²); orders below 10 follow from higher ones by the recurrence downward.

    Reference: NIST Handbook of Mathematical Functions, 10.41.3; AsymVLM (NeurIPS 2025) bounds the
        same function from both sides and takes the mean.
    """
    order = dim / 2 - 1
    x = ops.cast(concentration, _precise())
    value = _log_bessel_over_power(order, x) - _log_bessel_over_power(order, ops.zeros_like(x))
    return ops.cast(x - value, "float32")


def power_spherical_log_constant(concentration, dim):
    """log C_D(κ) − log C_D(0) + κ log 2 of the Power Spherical density C_D(κ) (1 + μᵀx)^κ.

    So that the log density over the uniform one is κ log((1 + μᵀx)/2) + this.

    Args, Returns: as of `von_mises_fisher_log_constant`.

    Relations: log C_D(κ) = −[(α + β) log 2 + β log π + lnΓ(α) − lnΓ(α + β)], β = (D − 1)/2 and
        α = β + κ.

    Reference: De Cao and Aziz, "The Power Spherical distribution", 2020, equation 6.
    """
    beta = (dim - 1) / 2
    x = ops.cast(concentration, _precise())
    value = _log_gamma_ratio(beta + x, beta) - _log_gamma_ratio(beta + ops.zeros_like(x), beta)
    return ops.cast(value, "float32")


def _log_bessel_over_power(order, x):
    """log(x^−ν I_ν(x)) for x ≥ 0, which is finite at 0."""
    steps = max(0, math.ceil(_FIRST_ORDER - order))
    if not steps:
        return _debye(order, x)
    # x^−(ν−1) I_(ν−1) = x² · x^−(ν+1) I_(ν+1) + 2ν · x^−ν I_ν: every term is positive.
    above, current = _debye(order + steps + 1, x), _debye(order + steps, x)
    for step in range(steps, 0, -1):
        own = order + step
        below = ops.log(ops.square(x) * ops.exp(above - current) + 2.0 * own) + current
        above, current = current, below
    return current


def _debye(order, x):
    # ν/s = t and 1/s are bounded, so the polynomials u_k(t)/ν^k are written in 1/s and t².
    s = ops.sqrt(order**2 + ops.square(x))
    inverse, t = 1.0 / s, ops.square(order / s)
    first = inverse * (3.0 - 5.0 * t) / 24.0
    second = inverse**2 * (81.0 - 462.0 * t + 385.0 * t**2) / 1152.0
    third = inverse**3 * (30375.0 - 369603.0 * t + 765765.0 * t**2 - 425425.0 * t**3) / 414720.0
    series = ops.log1p(first + second + third)
    return s - order * ops.log(order + s) - 0.5 * ops.log(s) + series - 0.5 * math.log(2 * math.pi)


def _log_gamma_ratio(alpha, beta):
    """lnΓ(α + β) − lnΓ(α)."""
    return _log_gamma(alpha + beta) - _log_gamma(alpha)


def _log_gamma(x):
    """lnΓ by Stirling's series, of x > 0; Keras has none for every backend."""
    shift = ops.zeros_like(x)
    for step in range(_SHIFT):
        shift = shift + ops.log(x + step)
    x = x + _SHIFT
    series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x**3) + 1.0 / (1260.0 * x**5)
    return (x - 0.5) * ops.log(x) - x + 0.5 * math.log(2 * math.pi) + series - shift


def _precise():
    return "float64" if keras.backend.backend() != "jax" else "float32"
