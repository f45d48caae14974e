"""A finished run or a preset with the split that a study looks at, or a small part of it."""

import dataclasses

import numpy as np

from halo_search.errors import InputError
from zoo import evaluation
from zoo.data.records.sources import Features

SMALL = 40  # images of --smoke


def opened(name, data_dir=None, smoke=False):
    """`(model, split)` of a run or preset; with `smoke` of some images of the split only."""
    model, split = evaluation.open_run(name, data_dir)
    return model, some_of(split, SMALL) if smoke else split


def gaussians(name, model, split):
    """The `EncodedSplit`, which has to be one of Gaussians."""
    encoded = evaluation.encode(model, split.records, split.source)
    if "log_variance" not in encoded.images or "log_variance" not in encoded.captions:
        raise InputError(f"{name}: expected a run of Gaussians; found one without variances")
    return encoded


def some_of(split, count):
    """A split of some images, evenly spaced, and their captions; all where there are fewer."""
    records = split.records
    if records.num_images <= count:
        return split
    chosen = np.linspace(0, records.num_images - 1, count).astype(int)
    captions = np.flatnonzero(np.isin(records.caption_image, chosen))
    picture = split.picture
    if picture is None:
        source = split.source.select(chosen)
    else:
        source = Features(np.stack([picture(i) for i in chosen]).astype("float32"))
    return dataclasses.replace(
        split,
        records=records.select(chosen),
        source=source,
        picture=picture and (lambda index: picture(chosen[index])),
        true_matches=None if split.truth is None else split.truth[chosen][:, captions].sum(axis=0),
        truth=None if split.truth is None else split.truth[chosen][:, captions],
    )
