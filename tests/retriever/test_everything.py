"""All that fits: every item above the cut-off and no other, whatever the page, copies once."""

from types import SimpleNamespace

import numpy as np
import pytest

import zoo
from zoo.confidence import Fits, calibrate_on
from zoo.confidence.judge import Judge
from zoo.retriever import Retriever
from zoo.retriever.answer import grouped
from zoo.search import Index

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
            SimpleNamespace(similarity=similarity),
            Index.build(items, similarity),
            names=dict(enumerate(names)),
        )
        retriever._judge = judge
        return retriever, items, {name: part[:1] for name, part in gaussians(rng, 1).items()}

    return make


def by_hand(retriever, items, question):
    """`(ids that fit best first, which each is a copy of)` by comparing all with all."""
    variance = np.exp(items["log_variance"].astype(float)).sum(axis=1)
    distance = ((items["mean"].astype(float) - question["mean"]) ** 2).sum(axis=1)
    order = np.argsort(distance + variance, kind="stable")
    (judgement,) = retriever.judged(question, "captions", k=SIZE)
    best = np.argsort(-judgement.fits, kind="stable")
    ids = order[best[judgement.fits[best] >= 0.5]]
    vectors = np.concatenate([items["mean"], np.sqrt(variance)[:, None]], axis=1)
    vectors = vectors - vectors.mean(axis=0)
    owner = []
    for row, one in enumerate(ids):
        near = row
        for before in sorted(set(owner)):
            a, b = vectors[one], vectors[ids[before]]
            if a @ b / np.linalg.norm(a) / np.linalg.norm(b) > retriever.judge.copies:
                near = before
                break
        owner.append(near)
    return ids, np.array(owner)


def test_pages_hold_what_comparing_all_with_all_finds(asked):
    lengths = []
    for seed in range(50):
        retriever, items, question = asked(seed)
        ids, owner = by_hand(retriever, items, question)
        shown = np.unique(owner)
        lengths.append(len(ids))
        pages = [retriever.all(question, offset=start, limit=37) for start in range(0, SIZE, 37)]
        found = np.concatenate([page.answer.ids for page in pages])
        np.testing.assert_array_equal(found, ids[shown], err_msg=str(seed))
        copies = np.concatenate([page.copies for page in pages])
        np.testing.assert_array_equal(copies, [(owner == row).sum() - 1 for row in shown])
        assert {(page.total, page.items) for page in pages} == {(len(shown), len(ids))}
        named = retriever.all(question, by="name", limit=SIZE)
        assert named.answer.names == sorted(retriever.names_of(ids[shown]))
        fits = retriever.judged(question, "captions", k=SIZE)[0].fits
        assert named.unfit == pytest.approx(1 - fits[fits >= 0.5].mean())
    assert min(lengths) < 64 < max(lengths)
    assert np.unique(lengths).size > 20


def test_copies_are_of_the_first_shown():
    vectors = np.array([[1.0, 0], [0, 1], [1, 0.01], [0.01, 1], [1, 1]])
    assert grouped(vectors, 0.99).tolist() == [0, 1, 0, 1, 4]
    assert grouped(np.empty((0, 2)), 0.99).tolist() == []


def test_nothing_is_listed_where_nothing_is_known(asked):
    retriever, _, question = asked(0)
    retriever._judge = Judge(why_not="there are no probes")
    with pytest.raises(ValueError, match=r"(?i)there are no probes"):
        retriever.all(question)
