"""All that fits: every item above the cut-off and no other, whatever the page."""

from types import SimpleNamespace

import numpy as np
import pytest

import zoo
from halo_search.confidence import Fits, calibrate_on
from halo_search.confidence.judge import Judge
from halo_search.index import Index
from halo_search.retriever import Retriever
from halo_search.retriever.gallery_model import GalleryModel

SIZE, DIM = 300, 12


def gaussians(rng, items):
    mean = rng.normal(size=(items, DIM)).astype("float32")
    return {"mean": mean, "log_variance": rng.normal(-3, 0.3, (items, DIM)).astype("float32")}


def gallery_of(rng, copies=40):
    """Items of which some are near copies of others, in any order."""
    own = gaussians(rng, SIZE - copies)
    again = rng.integers(0, len(own["mean"]), copies)
    order = rng.permutation(SIZE)
    items = {name: np.concatenate([part, part[again]])[order] for name, part in own.items()}
    items["mean"] = items["mean"] + rng.normal(scale=1e-4, size=items["mean"].shape).astype("f4")
    return items


@pytest.fixture(scope="module")
def asked():
    """Function from a seed to `(retriever, its items, a question)`, judged by one calibration."""
    rng = np.random.default_rng(0)
    similarity = zoo.similarities.ClosedFormSampledDistance(scale=1.0, shift=0.0)
    own = gaussians(rng, 300)
    queries = {**own, "mean": own["mean"] + rng.normal(scale=0.7, size=own["mean"].shape)}
    confidence = calibrate_on(Index.build(gallery_of(rng), similarity), queries, own)
    judge = Judge(confidence, Fits(np.array([0.5, 8.0])))

    def make(seed):
        rng = np.random.default_rng(seed)
        items = gallery_of(rng)
        names = [f"{n:04d}.jpg" for n in rng.permutation(SIZE)]
        retriever = Retriever(
            GalleryModel(None, opened=SimpleNamespace(similarity=similarity, reads_texts=False)),
            Index.build(items, similarity),
            names=dict(enumerate(names)),
        )
        retriever.calibration.latest = judge
        return retriever, items, {name: part[:1] for name, part in gaussians(rng, 1).items()}

    return make


def by_hand(retriever, items, question):
    """The ids that fit, best first."""
    variance = np.exp(items["log_variance"].astype(float)).sum(axis=1)
    distance = ((items["mean"].astype(float) - question["mean"]) ** 2).sum(axis=1)
    order = np.argsort(distance + variance, kind="stable")
    (judgement,) = retriever.judged(question, "captions", k=SIZE)
    best = np.argsort(-judgement.fits, kind="stable")
    return order[best[judgement.fits[best] >= 0.5]]


def test_pages_hold_what_sorting_all_finds(asked):
    lengths = []
    for seed in range(50):
        retriever, items, question = asked(seed)
        ids = by_hand(retriever, items, question)
        lengths.append(len(ids))
        pages = [retriever.all(question, offset=start, limit=37) for start in range(0, SIZE, 37)]
        found = np.concatenate([page.answer.ids for page in pages])
        np.testing.assert_array_equal(found, ids, err_msg=str(seed))
        assert {page.total for page in pages} == {len(ids)}
        fits = retriever.judged(question, "captions", k=SIZE)[0].fits
        assert pages[0].unfit == pytest.approx(1 - fits[fits >= 0.5].mean())
    assert min(lengths) < 64 < max(lengths)
    assert np.unique(lengths).size > 20


def test_nothing_is_listed_where_nothing_is_known(asked):
    retriever, _, question = asked(0)
    retriever.calibration.latest = Judge(why_not="there are no probes")
    with pytest.raises(ValueError, match=r"(?i)there are no probes"):
        retriever.all(question)
