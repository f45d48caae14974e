"""The scores of a search, and how like the first answer the ones after it are."""

import numpy as np
import pytest

from probe_world import world
from zoo.confidence import QueryScores, agreement
from zoo.confidence.scores import copy_threshold

RNG = np.random.default_rng(0)


def by_loops(answers, centre):
    found = []
    for one in answers:
        one = [(x - centre) / np.linalg.norm(x - centre) for x in one]
        cosines = [one[0] @ other for other in one[1:]]
        found.append([np.mean(cosines[: rank - 1]) for rank in (5, 10) if rank <= len(one)])
    return np.array(found)


@pytest.mark.parametrize("depth", [20, 12, 5])
def test_the_mean_cosine_about_the_centre(depth):
    answers, centre = RNG.normal(size=(7, depth, 6)), RNG.normal(size=6)
    found = agreement(answers, centre)[0]
    np.testing.assert_allclose(found, by_loops(answers, centre), atol=1e-12)
    far = agreement((answers + 100).astype(np.float32), centre + 100)[0]
    np.testing.assert_allclose(far, found, atol=1e-4)


def test_scores_of_rows_know_it():
    rows, vectors = RNG.normal(size=(9, 40)), RNG.normal(size=(40, 6))
    scores = QueryScores.of_matrix(rows, vectors=vectors)
    best = np.argsort(-rows, axis=1)[:, :20]
    np.testing.assert_allclose(
        scores.agreement, by_loops(vectors[best], vectors.mean(axis=0)), atol=1e-12
    )
    both = QueryScores.concatenate([scores.take([0, 2]), scores.take(slice(5, 7))])
    np.testing.assert_array_equal(both.agreement, scores.agreement[[0, 2, 5, 6]])
    without = QueryScores.of_matrix(rows)
    assert QueryScores.concatenate([scores, without]).agreement is None
    assert QueryScores.of_matrix(rows[:, :4], vectors=vectors[:4]).agreement is None
    fewer = QueryScores.concatenate(
        [scores, QueryScores.of_matrix(rows[:, :12], None, vectors[:12])]
    )
    assert fewer.agreement.shape == (18, 2)


def test_one_item_is_no_gallery():
    with pytest.raises(ValueError, match="at least two items; received 1"):
        QueryScores.of_matrix([[0.1, 0.2]], keep=[[True, False]])


def test_the_agreement_passes_over_copies():
    rng = np.random.default_rng(0)
    gallery = rng.normal(size=(30, 6))
    answers = np.concatenate([gallery[:1], gallery[:1], gallery[:1], gallery[1:30]])[None]
    plain = agreement(gallery[None], gallery.mean(axis=0))[0]
    np.testing.assert_allclose(agreement(answers, gallery.mean(axis=0), 0.999)[0], plain)
    assert (agreement(answers, gallery.mean(axis=0))[0] > plain).all()
    twice = np.repeat(gallery, 2, axis=0)[None]
    np.testing.assert_allclose(agreement(twice, gallery.mean(axis=0), 0.999)[0], plain)
    same = np.repeat(gallery[:1], 20, axis=0)[None]
    np.testing.assert_allclose(agreement(same, gallery.mean(axis=0), 0.999)[0], 0.999)


def test_copies_are_nearer_than_neighbours():
    items = world(0, 500)[0]
    threshold = copy_threshold(np.concatenate([items, items[:50]]))  # some are given twice
    assert 0.3 < threshold < 0.99
