"""Probes of other photos than the user's: how far off they are, and what a few own pairs tell."""

import dataclasses

import numpy as np

from zoo.confidence import guarantees
from zoo.confidence.calibrate import ask_probes, moved
from zoo.embeddings.arrays import take

# What `python -m studies.generic_probes` prints, see docs/results/generic_probes.md: the standard
# deviation of the shift of all log odds between photos of one kind and of another, and the mean
# and the greatest error of what is said, by other photos alone and beside 30 of one's own.
SHIFT = 0.47
OFF, OFF_WITH_OWN, OWN = (0.07, 0.17), (0.04, 0.17), 30
GENERAL = "Calibrated on general photos"
_STEPS = 50


def calibrated_elsewhere(confidence, index, pairs, is_own, spread=SHIFT):
    """A `Confidence` by general probes, moved by those that are of the user's photos.

    People who describe other photos write longer or vaguer questions, and what was learnt is off by
    a shift δ of all log odds: normal, with mean 0 and the measured deviation `spread`. The own
    probes are asked in front of the gallery; δ is the most likely one after that, and its
    deviation, by Laplace, widens the interval. Nothing is certified: no promise holds for other
    photos.

    Args:
        confidence: of `calibrate_on`, by all probes.
        index: the gallery.
        pairs: of `Probes.pairs`.
        is_own: `(Q,)` booleans, the questions of the user's kind.
        spread: the standard deviation of δ.
    """
    variance, shift = spread**2, 0.0
    if is_own.any():
        groups = guarantees.numbered(pairs["groups"], len(is_own))[is_own]
        groups = np.unique(groups, return_inverse=True)[1]
        own = take(pairs["queries"], is_own), pairs["own"], pairs["matches"][is_own]
        probed = ask_probes(index, *own)[0]
        weights = guarantees.weights(groups)
        odds = confidence.logistic.logit(confidence.features(probed.scores))
        shift, variance = _most_likely(odds, probed.correct, weights, spread)
    seen = confidence.in_gallery
    deviation = float(np.hypot(seen.deviation, np.sqrt(variance)))
    return dataclasses.replace(
        moved(confidence, shift),
        certificate=None,
        in_gallery=dataclasses.replace(seen, deviation=deviation),
    )


def _most_likely(logits, correct, weights, spread):
    """`(δ, its variance)` of a logistic regression with one number, by Newton's method."""
    shift = 0.0
    for _ in range(_STEPS):
        said = 1 / (1 + np.exp(-(logits + shift)))
        slope = (weights * (correct - said)).sum() - shift / spread**2
        curve = (weights * said * (1 - said)).sum() + 1 / spread**2
        shift += slope / curve
        if abs(slope / curve) < 1e-9:
            break
    return float(shift), float(1 / curve)


def note_of(general, owners):
    """What an answer says of its probes; an empty text where none of the `(M,)` captions is
    general. `owners` is the row of each caption's image.
    """
    if general is None:
        return ""
    own = 0 if owners is None else len(np.unique(owners[~general]))
    mean, most = OFF_WITH_OWN if own >= OWN else OFF
    off = f"off by {mean} on average and {most} at most in our tests."
    if own >= OWN:
        return f"{GENERAL} and {own:,} of your own; with {OWN} it was {off}"
    if own:
        return f"{GENERAL} and {own:,} of your own; general photos alone were {off}"
    return f"{GENERAL}, which was {off}"
