"""Noisy correspondence: captions that belong to other images."""

import dataclasses

import numpy as np


def with_shuffled_captions(records, share, seed=0):
    """The records with some captions given to the wrong images.

    The texts of `share` of the captions, drawn at random, go round among themselves, so that each
    of these images gets another caption's text. Labels stay as they were: they are now wrong.

    Args:
        records: a training split.
        share: of the captions that are shuffled, such as 0.2 or 0.5.
        seed: of the drawing.

    Returns:
        `Records` with other `captions`.

    Raises:
        ValueError: if the share is outside of [0, 1].

    Reference: Huang et al., "Learning with Noisy Correspondence", NeurIPS 2021; PCME++ (Chun,
        ICLR 2024), section 3.2.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"`share` must be in [0, 1]; received {share}")
    rng = np.random.default_rng(seed)
    count = round(share * records.num_captions)
    shuffled = rng.permutation(records.num_captions)[:count]
    captions = records.captions.copy()
    captions[np.roll(shuffled, 1)] = records.captions[shuffled]
    return dataclasses.replace(records, captions=captions)
