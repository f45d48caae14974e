"""Own items put into a gallery, each for its own probe and each looked at by itself."""

import numpy as np
import pytest

from halo_search.confidence import QueryScores, calibrate_on
from halo_search.confidence.confidence import rank_features
from halo_search.confidence.insertion import put_there, thinned
from halo_search.index import Index
from probe_world import DIM, unit

COPIES = 0.9999


def probed(gallery, queries, own, rows, copies=COPIES):
    return Index.build(gallery, "cosine").probe(queries, own, rows, copies)


def expected(gallery, query, own, is_there):
    """`(ranks of the first own item, which of the best are own, gallery's size)` by brute force."""
    is_copy = (unit(gallery - gallery.mean(axis=0)) @ unit(own - gallery.mean(axis=0)).T).max(
        axis=1
    ) > COPIES
    added = own[~is_there]
    scores = np.concatenate([gallery, added]) @ query
    mine = np.concatenate([is_copy, np.ones(len(added), bool)])
    # Ties count against the probe: a stranger comes before an own item of the same score.
    order = np.lexsort((mine, -scores))
    return 1 + np.flatnonzero(mine[order])[0], mine[order][:20], len(scores)


def test_one_copy_hides_none_of_the_other_own_items():
    """The gallery holds one of five own items: the other four are put there all the same."""
    rng = np.random.default_rng(0)
    own = unit(rng.normal(size=(60, DIM)))
    rows = np.arange(60).reshape(12, 5)
    there = np.arange(12) < 6  # of these probes the gallery holds the last own item
    gallery = np.concatenate([unit(rng.normal(size=(150, DIM))), own[rows[there, 4]]])
    queries = unit(own[rows[:, 0]] + own[rows[:, 4]] + 0.15 * rng.normal(size=(12, DIM)))
    found = probed(gallery, queries, own, rows)
    np.testing.assert_array_equal(found.is_there, there[:, None] & (np.arange(5) == 4))
    np.testing.assert_array_equal(found.scores.size, 156 + np.where(there, 4, 5))
    for row in range(12):
        rank, is_own, size = expected(gallery, queries[row], own[rows[row]], found.is_there[row])
        assert found.ranks[row] == rank
        np.testing.assert_array_equal(found.is_own[row], is_own)
        assert found.scores.size[row] == size
        assert found.is_own[row].sum() >= 1
    assert found.correct[:6].mean() > 0.5  # found by the first item, which is no copy


def test_several_own_items_are_told_apart_among_the_best():
    rng = np.random.default_rng(1)
    centres = unit(rng.normal(size=(10, DIM)))
    own = unit(np.repeat(centres, 4, axis=0) + 0.1 * rng.normal(size=(40, DIM)))
    gallery = unit(rng.normal(size=(80, DIM)))
    rows = np.arange(40).reshape(10, 4)
    rows[3, 2:] = -1  # it brings two
    queries = unit(centres + 0.1 * rng.normal(size=(10, DIM)))
    found = probed(gallery, queries, own, rows)
    for row in range(10):
        mine = own[rows[row][rows[row] >= 0]]
        rank, is_own, _ = expected(gallery, queries[row], mine, np.zeros(len(mine), bool))
        assert found.ranks[row] == rank
        np.testing.assert_array_equal(found.is_own[row], is_own)
    assert found.is_own[:, :4].all(axis=1).mean() > 0.5
    assert found.is_own[3].sum() == 2
    np.testing.assert_array_equal(found.listed, found.scores.top)


def test_ties_count_against_the_probe_but_not_against_its_copy():
    """Two strangers with the own item's score; a copy that is there is not put behind them."""
    without = QueryScores([[0.9, 0.5, 0.5, 0.1]] * 2, [0.2] * 2, [0.1] * 2, 30)
    tied = put_there(without, np.array([[0.5], [0.9]]))
    np.testing.assert_array_equal(tied.ranks, [4, 2])
    np.testing.assert_array_equal(tied.correct, [False, False])
    np.testing.assert_array_equal(np.flatnonzero(tied.is_own[0]), [3])
    own = unit(np.random.default_rng(2).normal(size=(1, DIM)))
    gallery = np.concatenate([own, own, unit(np.random.default_rng(3).normal(size=(30, DIM)))])
    found = probed(gallery, own, own, np.array([[0]]))
    assert found.is_there.all()
    assert found.ranks[0] == 1
    assert found.scores.size[0] == 32
    np.testing.assert_array_equal(np.flatnonzero(found.is_own[0]), [0, 1])


def test_later_answers_are_wanted_as_often_as_is_said():
    """Questions with several own items: over ranks 2 to 20, and at each of them."""
    rng = np.random.default_rng(6)
    centres = unit(rng.normal(size=(400, DIM)))
    own = unit(np.repeat(centres, 3, axis=0) + 0.35 * rng.normal(size=(1200, DIM)))
    asked = unit(centres + 0.15 * rng.uniform(0.2, 2, (400, 1)) * rng.normal(size=(400, DIM)))
    owners = np.repeat(np.arange(400), 3)
    here, told = owners < 150, np.arange(400) >= 150
    index = Index.build(own[here], "cosine")
    matches = np.arange(400)[told, None] == owners[~here]
    confidence = calibrate_on(index, asked[told], own[~here], matches)
    scores = index.query_scores(asked[~told], copies=confidence.copies)
    ids = index.search(asked[~told], 20)[1]
    wanted = owners[here][ids] == np.arange(150)[:, None]
    facts = confidence.logit(scores), scores.top, scores.mean, scores.variance
    said = confidence.later(*facts)
    assert said.shape == (150, 19)
    assert wanted[:, 1:].sum() > 150
    assert said.sum() == pytest.approx(wanted[:, 1:].sum(), rel=0.12)
    for part in (slice(0, 1), slice(1, 4), slice(4, 9), slice(9, 19)):
        true = wanted[:, 1:][:, part].mean()
        assert said[:, part].mean() == pytest.approx(true, abs=0.05)
    assert (np.diff(said, axis=1) <= 1e-9).all()
    assert confidence.later(*[fact[:, :1] if fact.ndim > 1 else fact for fact in facts]).shape == (
        150,
        0,
    )


def test_what_tells_of_later_answers_by_hand():
    found = rank_features([-1.0], np.array([[0.9, 0.8, 0.5]]), np.array([0.2]), np.array([0.04]))
    np.testing.assert_allclose(found, [[[-1, 0.5, np.log(2)], [-1, 2, np.log(3)]]])
    alike = rank_features([-1.0], np.full((1, 3), 0.5), np.array([0.5]), np.array([0.0]))
    np.testing.assert_allclose(alike, [[[-1, 0, np.log(2)], [-1, 0, np.log(3)]]])


def test_thinned_probes_keep_their_own_items_and_a_share_of_the_strangers():
    rng = np.random.default_rng(0)
    top = -np.sort(-rng.normal(size=(400, 10)), axis=1)
    scores = QueryScores(top, top.mean(axis=1), top.var(axis=1), 200)
    found = put_there(scores, rng.normal(size=(400, 1)))
    shares = np.where(np.arange(400) < 200, 0.2, 0.9)
    kept = thinned(found, shares)
    np.testing.assert_array_equal(
        kept.is_own[:, 1:].any(axis=1) | kept.is_own[:, 0], found.is_own.any(axis=1)
    )
    strangers = (~np.isnan(kept.listed) & ~kept.is_own).sum(axis=1) / (~found.is_own).sum(axis=1)
    assert strangers[:200].mean() == pytest.approx(0.2, abs=0.05)
    assert strangers[200:].mean() == pytest.approx(0.9, abs=0.05)
    before, left = found.ranks - 1, kept.ranks - 1
    np.testing.assert_array_equal(np.isnan(left), np.isnan(before))
    for part, share in ((slice(0, 200), 0.2), (slice(200, 400), 0.9)):
        assert np.nanmean(left[part]) == pytest.approx(share * np.nanmean(before[part]), rel=0.1)
