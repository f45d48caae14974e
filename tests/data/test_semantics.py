import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from zoo import metrics
from zoo.data import batches, sources
from zoo.data.records import Records
from zoo.data.records.semantics import semantics
from zoo.data.text.captions import normalise, word_tokenizer

RNG = np.random.default_rng(0)
WORDS = ["Red", "blue", "bird", "wing", "a", "small,", "the", "branch."]
N, EACH = 12, 3


def records(classes=None, captions=None):
    captions = captions or [
        " ".join(RNG.choice(WORDS, RNG.integers(2, 9))) for _ in range(N * EACH)
    ]
    return Records(
        name="some",
        image_paths=[f"{i}.png" for i in range(N)],
        captions=captions,
        caption_image=np.repeat(np.arange(N), EACH),
        image_labels=np.arange(N) if classes is None else np.arange(N) % classes,
        image_ids=list(range(N)),
    )


def expected(split, variant):
    """Each image against each caption by the metric's own function, of which the groups are the
    images, over which document frequencies are taken; the mean over those of an image's class."""
    words = [text.decode() for text in normalise(tf.constant(list(split.captions))).numpy()]
    groups = [words[EACH * image : EACH * (image + 1)] for image in range(N)]
    same = np.equal.outer(split.image_labels, split.image_labels)
    return (same / same.sum(1, keepdims=True)) @ metrics.cider(groups, words, variant)


@pytest.mark.parametrize("classes", [None, 4])
@pytest.mark.parametrize("variant", ["cider", "cider_d", "tfidf"])
def test_positives_are_the_captions_with_the_images_label(classes, variant):
    split = records(classes)
    found = semantics(split, variant, verbose=False)
    whole = expected(split, variant)
    assert found.shape == (N, N * EACH)
    images, captions = RNG.permutation(N)[:7], RNG.permutation(N * EACH)[:9]
    np.testing.assert_allclose(found.block(images, captions), whole[images][:, captions], atol=2e-6)
    matrix = found.matrix()
    np.testing.assert_allclose(matrix.rows(0, N), whole, atol=2e-6)
    asp = metrics.average_semantic_precision(whole, matrix)
    assert asp["i2t"] > 0.99
    assert asp["t2i"] > 0.99


def test_copies_of_images_and_captions_have_what_the_first_have():
    whole = semantics(records(), verbose=False)
    twice = whole.repeated(2)
    images, captions = np.array([1, N + 1, 4]), np.array([0, N * EACH, 7, N * EACH + 7])
    assert twice.shape == (2 * N, 2 * N * EACH)
    single = whole.block(images % N, captions % (N * EACH))
    np.testing.assert_array_equal(twice.block(images, captions), single)
    whole_matrix = twice.matrix().rows(0, 2 * N)
    np.testing.assert_array_equal(whole_matrix[np.ix_(images, captions)], single)


def test_a_word_of_every_class_still_tells_images_apart():
    """Two classes of three images; "crown" is in both classes, but not in every image. Over
    classes its idf is 0, and captions of it would have nothing in common."""
    texts = ["a crown", "a bird", "a wing", "a crown", "a beak", "a tail"]
    split = Records(
        name="two classes",
        image_paths=[f"{i}.png" for i in range(6)],
        captions=texts,
        caption_image=np.arange(6),
        image_labels=np.arange(6) // 3,
        image_ids=list(range(6)),
    )
    found = semantics(split, "tfidf", verbose=False).block(np.arange(6), np.arange(6))
    # One of the three positives of each class is the same caption, of which "a" weighs nothing.
    np.testing.assert_allclose(found[:, [0, 3]], 1 / 3, atol=1e-6)


@pytest.mark.parametrize("kind", ["classes", "several"])
def test_a_batch_brings_its_part(kind):
    split = records(6 if kind == "classes" else None)
    whole = expected(split, "cider")
    # Features tell the image, one column at a time.
    features = sources.Features(np.arange(N, dtype="float32")[:, None])
    split = dataclasses.replace(split, semantics=semantics(split, verbose=False))
    words = word_tokenizer(split.captions, max_words=10)
    make = {
        "pairs": batches.image_caption_pairs,
        "classes": batches.class_pairs,
        "several": batches.images_with_captions,
    }[kind]
    sizes = {"batch_size": 4, "num_steps": 3}
    ids = words(list(split.captions)).numpy()
    for batch in make(split, words, features, **sizes):
        images = batch["images"].numpy().astype(int)[:, 0]
        found = batch["semantic"].numpy()
        assert found.shape == (len(images), len(batch["captions"]))
        for column, caption in enumerate(batch["captions"].numpy()):
            same = np.flatnonzero((ids == caption).all(1))
            choices = whole[images][:, same]
            error = np.abs(choices - found[:, [column]]).max(0).min()
            assert error < 2e-6
