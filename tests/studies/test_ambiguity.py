"""Who fits whom by people and by the oracle, and the heads of the study of ambiguity in small."""

import numpy as np

from studies.ambiguity import Points, halves
from studies.judgments import Judgments
from zoo.embeddings.arrays import unit

TOPICS, PHOTOS = 6, 60


def drawn(seed):
    """Photos of topics, of which some are common; three captions each, a photo with two."""
    rng = np.random.default_rng(seed)
    weights = np.arange(1, TOPICS + 1) / np.arange(1, TOPICS + 1).sum()
    topics = rng.choice(TOPICS, PHOTOS, p=weights)
    owners = np.repeat(np.arange(PHOTOS), 3)[1:]
    centres = 2 * np.eye(8)[:TOPICS]
    images = unit(centres[topics] + 0.3 * rng.normal(size=(PHOTOS, 8)))
    captions = unit(centres[topics[owners]] + 0.3 * rng.normal(size=(len(owners), 8)))
    names = [f"images/{seed}-{photo}.jpg" for photo in range(PHOTOS)]
    texts = [f"caption {row}" for row in range(len(owners))]
    sides = (side.astype("float32") for side in (images, captions))
    return Points(*sides, None, unit(captions), owners, names, texts), topics


def judged(points, topics):
    """All pairs of every photo's last caption and every second photo: one topic fits."""
    last = np.flatnonzero(np.append(np.diff(points.owners), 1))
    rows, photos = (side.ravel() for side in np.meshgrid(last, np.arange(0, PHOTOS, 2)))
    own, names = points.owners[rows], np.array(points.names)
    texts = np.array(points.texts)[rows]
    return Judgments(texts, names[own], names[photos], topics[own] == topics[photos])


def test_a_caption_says_nothing_of_itself():
    points, _ = drawn(0)
    table = points.table()
    assert table[0].tolist() == [0, 1, -1]
    assert table[1].tolist() == [2, 3, 4]
    found = points.features(np.array([0, 3]), np.array([0, 1]), table)
    cosines = points.sentences @ points.sentences.T
    np.testing.assert_allclose(found[0, 0, :2], [cosines[0, 1], -1], atol=1e-6)
    np.testing.assert_allclose(found[0, 1, :2], np.sort(cosines[0, 2:5])[:0:-1], atol=1e-6)
    np.testing.assert_allclose(found[1, 1, :2], np.sort(cosines[3, [2, 4]])[::-1], atol=1e-6)
    np.testing.assert_allclose(found[1, 0, 2], points.captions[3] @ points.images[0], atol=1e-6)


def test_halves_share_no_photo_and_learn_from_each_other():
    points, topics = drawn(0)
    judgments = judged(points, topics)
    first, second = halves(points, judgments, 1)
    assert not set(first.gallery) & set(second.gallery)
    for half, other in ((first, second), (second, first)):
        assert set(points.owners[half.questions]) <= set(half.gallery)
        own = points.owners[half.questions][:, None] == half.gallery
        assert (half.people[own] == 1).all()
        assert (half.likely[own] == 1).all()
        assert (np.isnan(half.people) == ((half.gallery % 2 == 1) & ~own)).all()
        same = topics[points.owners[half.questions]][:, None] == topics[half.gallery]
        known = ~np.isnan(half.people)
        np.testing.assert_array_equal(half.people[known], same[known])
        assert half.likely[same].mean() > half.likely[~same].mean() + 0.5
        # The judgments of this half are changed: its oracle stays, the other's does not.
        in_half = np.isin(judgments.images, np.array(points.names)[half.gallery])
        changed = judgments._replace(fits=judgments.fits ^ in_half)
        again = list(halves(points, changed, 1))
        place = 0 if half is first else 1
        np.testing.assert_allclose(again[place].oracle.plain()[0], half.oracle.plain()[0])
        assert not np.allclose(
            again[1 - place].oracle.plain()[0], other.oracle.plain()[0], atol=0.1
        )
