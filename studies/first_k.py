"""Whether the first k results hold the wanted one as often as `first_k` promises."""

import numpy as np
from scipy.stats import binom

from halo_search.confidence import calibrate_on
from halo_search.embeddings.arrays import take
from halo_search.index import Index
from studies.table_rows import Row

ERROR, SHARE = 0.1, 0.89  # what is promised, and the share that must be measured
GALLERIES, PHOTOS = 100, 250  # listed results: galleries of so many photos
BROKEN, LEVEL = 0.1, 0.05  # share of galleries that may be below what is promised, by a test
DRAWS, SIZES, PROBES, ASKED = 20, (100, 250, 1000, 4000), 1000, 500  # own vectors
KINDS, DIM, SPREAD, NOISE = 60, 10, 0.8, 1.2


def listed_rows(encoded, retriever_of, seed):
    """`Row`s on results as they are listed: a caption of each photo of a drawn gallery asks it.

    Args:
        encoded: the `Encoded` photos.
        retriever_of: function from images and ids to a `Retriever`.
        seed: of what is drawn.
    """
    shares, broken, ks = [], 0, []
    for draw in range(GALLERIES):
        rng = np.random.default_rng([seed, draw])
        photos = np.sort(rng.permutation(len(encoded.names))[:PHOTOS])
        captions = [rng.choice(np.flatnonzero(encoded.owners == photo)) for photo in photos]
        retriever = retriever_of(take(encoded.images, photos), photos)
        queries, texts = take(encoded.captions, captions), [encoded.texts[row] for row in captions]
        judgements = retriever.judged(queries, "captions", texts, len(photos))
        _, ids = retriever.index.search(queries, len(photos))
        is_within = []
        for judgement, found, photo in zip(judgements, ids, photos, strict=True):
            if judgement.fits is None:
                continue
            k = min(judgement.listed().length(ERROR), len(photos))
            is_within.append(photo in found[judgement.order][:k])
            ks.append(k)
        shares.append(np.mean(is_within))
        broken += binom.cdf(np.sum(is_within), len(is_within), 1 - ERROR) < LEVEL
    share = float(np.mean(shares))
    print(f"\nfirst_k({ERROR}) of {PHOTOS} photos: median {np.median(ks):.0f}")
    name = f"wanted within first_k({ERROR}) as listed, {GALLERIES} galleries of {PHOTOS} photos"
    return [
        Row.of(name, share, f">= {SHARE}", share >= SHARE),
        Row.of(
            f"galleries whose share is below {1 - ERROR} at {100 * LEVEL:.0f} %",
            broken / GALLERIES,
            f"<= {BROKEN}",
            broken <= BROKEN * GALLERIES,
        ),
    ]


def own_vector_rows(seed):
    """`Row`s on vectors of your own: drawn ones of 60 kinds, in galleries of several sizes."""
    rows = []
    for size in SIZES:
        shares = [_share_of_own(size, np.random.default_rng([seed, size, d])) for d in range(DRAWS)]
        share, error = float(np.mean(shares)), np.std(shares, ddof=1) / np.sqrt(DRAWS)
        measured = f"{share:.3f} ± {error:.3f}"
        what = f"own vectors: wanted within first_k({ERROR}) of {size:,}"
        rows.append(Row.of(what, measured, f">= {SHARE}", share >= SHARE))
    return rows


def _share_of_own(size, rng):
    """The share of questions whose wanted item is within the first k of one drawn gallery."""
    centres = rng.normal(size=(KINDS, DIM))
    kinds = rng.integers(KINDS, size=size + PROBES)
    items = (SPREAD * centres[kinds] + rng.normal(size=(len(kinds), DIM))).astype(np.float32)
    asked = (items + NOISE * rng.normal(size=items.shape)).astype(np.float32)
    index = Index.build(items[:size], "cosine")
    k = min(calibrate_on(index, asked[size:], items[size:]).first_k(ERROR), size)
    _, ids = index.search(asked[: min(size, ASKED)], k)
    return (ids == np.arange(len(ids))[:, None]).any(axis=1).mean()
