import functools

import numpy as np
import pytest
import tensorflow as tf

from zoo.data.pipeline import streams
from zoo.images.seeding import step_seed


def images(rows=16, height=9, width=15):
    """Each picture has one value, its own: what a mixed one is made of can be read off. Height and
    width differ, so that code which confuses them fails."""
    values = np.arange(1, rows + 1, dtype="float32")
    shape = rows, height, width, 3
    return tf.constant(np.broadcast_to(values[:, None, None, None], shape).copy())


def mixed(share=0.5, step=3, mixup=0.5, whole_batches=False):
    before = images()
    after, kept = mixer(share, whole_batches)(before, tf.constant(step), tf.constant(mixup))
    return before.numpy(), after.numpy(), kept.numpy()


@functools.cache
def mixer(share, whole_batches):
    return tf.function(
        lambda images, step, mixup: streams.mix_images(
            images, share, 2.0, step_seed(0, step), mixup, whole_batches
        )
    )


def test_exactly_the_share_of_the_images_is_mixed_and_the_others_are_untouched():
    for step in range(5):
        before, after, kept = mixed(0.25, step)
        touched = (before != after).any(axis=(1, 2, 3))
        assert touched.sum() <= 4 == round(0.25 * 16)  # a box of no pixels changes nothing
        assert touched.sum() >= 3
        assert (kept[~touched] == 1.0).all()


def test_an_image_is_its_share_of_itself_and_the_rest_of_its_partner():
    for step in range(5):
        before, after, kept = mixed(1.0, step)
        expected = kept * before[:, 0, 0, 0] + (1 - kept) * before[::-1][:, 0, 0, 0]
        np.testing.assert_allclose(after.mean(axis=(1, 2, 3)), expected, rtol=1e-5)


def test_boxes_are_as_wide_and_as_high_as_their_share_and_lie_anywhere():
    """CutMix: both sides are √(1 − λ) of the picture's, and the place is drawn for each side."""
    places, sides = [], []
    for step in range(30):
        before, after, _ = mixed(1.0, step, mixup=0.0)
        for own, picture in zip(before, after, strict=True):
            rows, columns = np.nonzero(picture[..., 0] != own[0, 0, 0])
            height, width = (np.ptp(axis) + 1 if len(axis) else 0 for axis in (rows, columns))
            if 0 < height < 9 and 0 < width < 15:
                sides.append((height / 9, width / 15))
                places.append((rows.min() / (9 - height), columns.min() / (15 - width)))
    high, wide = np.transpose(sides)
    assert np.abs(high - wide).max() < 0.5 / 9 + 0.5 / 15 + 1e-6  # both are rounded
    assert abs(np.corrcoef(np.transpose(places))[0, 1]) < 0.2


def kind_of(before, after, kept):
    kinds = set()
    for own, partner, picture, share in zip(before, before[::-1], after, kept, strict=True):
        values = np.unique(picture.round(4))
        if len(values) == 1 and 0 < share < 1:
            kinds.add("mixup")
            continue
        assert set(values) <= {own[0, 0, 0], partner[0, 0, 0]}
        rows, columns = np.nonzero(picture[..., 0] != own[0, 0, 0])
        box = (np.ptp(rows) + 1) * (np.ptp(columns) + 1) if len(rows) else 0
        assert box == len(rows), "what was replaced is no rectangle"
        if 0 < box < picture[..., 0].size:
            kinds.add("cutmix")
    (kind,) = kinds
    return kind


@pytest.mark.parametrize(("mixup", "low", "high"), [(0.5, 0.35, 0.65), (1.0, 1, 1), (0.0, 0, 0)])
def test_the_kind_is_drawn_for_a_whole_batch(mixup, low, high):
    """PCME++, section 2.4: for every mini-batch Mixup or CutMix is chosen; table C.3 has rows with
    one of them alone."""
    kinds = [kind_of(*mixed(1.0, step, mixup=mixup)) for step in range(80)]
    assert low <= kinds.count("mixup") / len(kinds) <= high


def test_whole_batches_are_mixed_or_left():
    """Table C.3, not "in-batch": the whole mini-batch or none of it."""
    shares = []
    for step in range(120):
        _, _, kept = mixed(0.25, step, whole_batches=True)
        shares.append((kept < 1).mean())
        assert shares[-1] == 0 or shares[-1] > 0.9  # a box of no pixels leaves λ at 1
    assert 0.15 < np.mean(np.array(shares) > 0) < 0.35


def test_shares_follow_the_beta_distribution():
    kept = np.concatenate([mixed(1.0, step)[2] for step in range(100)])
    # Beta(2, 2): mean 1/2, variance 1/20; boxes of whole pixels move λ a little.
    assert abs(kept.mean() - 0.5) < 0.03
    assert abs(kept.var() - 0.05) < 0.01


def test_labels_keep_every_true_match():
    labels = tf.constant([0, 1, 1, 2], tf.int32)
    batch = {
        "images": images(4),
        "captions": tf.zeros((6, 3), tf.int32),
        "image_labels": labels,
        "caption_labels": tf.constant([0, 0, 1, 1, 2, 2], tf.int32),
        "semantic": tf.random.stateless_uniform((4, 6), (1, 2)),
    }
    dataset = tf.data.Dataset.from_tensors(batch)
    result = next(iter(streams.mix_batches(dataset, share=1.0, seed=1)))
    _, kept = streams.mix_images(batch["images"], 1.0, 2.0, step_seed(1, 0))
    semantic, mixed_semantic = batch["semantic"].numpy(), result["semantic"].numpy()
    share = kept.numpy()[:, None]
    expected = share * semantic + (1 - share) * semantic[::-1]
    np.testing.assert_allclose(mixed_semantic, expected, rtol=1e-6)
    matches, kept = result["matches"].numpy(), kept.numpy()
    for row, (own, partner) in enumerate([(0, 2), (1, 1), (1, 1), (2, 0)]):
        expected = kept[row] * (batch["caption_labels"].numpy() == own)
        expected = expected + (1 - kept[row]) * (batch["caption_labels"].numpy() == partner)
        np.testing.assert_allclose(matches[row], expected, rtol=1e-6)
    assert matches.max() <= 1.0


def test_a_step_is_the_same_wherever_the_run_started():
    batch = {
        "images": images(8),
        "captions": tf.zeros((8, 3), tf.int32),
        "image_labels": tf.range(8),
        "caption_labels": tf.range(8),
    }
    dataset = tf.data.Dataset.from_tensors(batch).repeat()
    whole = list(streams.mix_batches(dataset, seed=4).take(4))
    resumed = list(streams.mix_batches(dataset, seed=4, start_step=2).take(2))
    for a, b in zip(whole[2:], resumed, strict=True):
        np.testing.assert_array_equal(a["images"], b["images"])
        np.testing.assert_array_equal(a["matches"], b["matches"])
    assert (whole[0]["matches"].numpy() != whole[1]["matches"].numpy()).any()
