import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf

from zoo.data import Augmentation, Records, batches, captions, cub, sources
from zoo.data.pipeline.augmentation import RandomCrop

AUGMENTATION = Augmentation(
    crop=RandomCrop(area=(0.5, 1.0)), flip=True, cutout=0.5, word_dropping=0.3
)
OPTIONS = {"seed": 5, "augmentation": AUGMENTATION}
MAKERS = {  # class pairs are drawn by tests of their own below, and augmented as the others are
    "image_caption_pairs": functools.partial(batches.image_caption_pairs, batch_size=6),
    "images_with_captions": functools.partial(
        batches.images_with_captions, batch_size=6, captions_per_image=2
    ),
}


@pytest.fixture(scope="module")
def tokenizer(toy_records):
    return captions.word_tokenizer(toy_records.captions, max_words=24)


@pytest.fixture(scope="module")
def cached(toy_records):
    return sources.Pictures(toy_records, 32)


@pytest.fixture(scope="module")
def decoded(toy_records):
    return sources.Pictures(toy_records, 32, cache=False)


@pytest.fixture(params=["cached", "decoded"])
def source(request):
    return request.getfixturevalue(request.param)


def _collect(dataset):
    steps = list(dataset.as_numpy_iterator())
    return {key: np.stack([step[key] for step in steps]) for key in steps[0]}


def _same(first, second):
    assert first.keys() == second.keys()
    for key in first:
        np.testing.assert_array_equal(first[key], second[key], err_msg=key)


# Pairs are images with one caption, and drawn by tests of their own below, too.
@pytest.fixture(
    scope="module",
    params=[
        "images_with_captions",
        pytest.param("image_caption_pairs", marks=pytest.mark.very_slow),
    ],
)
def six_steps(request, toy_records, tokenizer, cached):
    make = functools.partial(MAKERS[request.param], toy_records, tokenizer)
    dataset = make(cached, num_steps=6, **OPTIONS)
    return request.param, make, dataset, _collect(dataset)


def test_a_step_is_a_function_of_seed_and_step(cached, decoded, six_steps):
    maker, make, whole, first = six_steps
    texts = 12 if maker == "images_with_captions" else 6
    assert {key: (tuple(s.shape), s.dtype.name) for key, s in whole.element_spec.items()} == {
        "images": ((6, 32, 32, 3), "float32"),
        "captions": ((texts, 24), "int32"),
        "image_labels": ((6,), "int32"),
        "caption_labels": ((texts,), "int32"),
    }
    # Again, of pictures that are read each time, resumed in the middle, and with one thread only.
    _same(first, _collect(make(decoded, num_steps=6, **OPTIONS)))
    resumed = _collect(make(cached, start_step=4, num_steps=2, **OPTIONS))
    _same({key: value[4:] for key, value in first.items()}, resumed)
    serial = tf.data.Options()
    serial.threading.private_threadpool_size = 1
    serial.threading.max_intra_op_parallelism = 1
    _same(first, _collect(whole.with_options(serial)))
    other = _collect(make(cached, num_steps=6, seed=6))
    assert (other["captions"] != first["captions"]).any()


def test_shards_are_pieces_of_the_whole_batch(cached, six_steps):
    _, make, _, first = six_steps
    pieces = [_collect(make(cached, num_steps=3, shard=(i, 2), **OPTIONS)) for i in range(2)]
    whole = {key: value[:3] for key, value in first.items()}
    _same(whole, {k: np.concatenate([piece[k] for piece in pieces], axis=1) for k in whole})


def test_class_pairs_of_captions_in_mixed_order(uneven):
    records, tokenizer, source = uneven
    classes = np.array([7, 3, 7, 5, 3, 5])
    records = dataclasses.replace(records, image_labels=classes)
    whole = _collect(batches.class_pairs(records, tokenizer, source, num_steps=60))
    shown = whole["images"][..., 0].astype(int)
    drawn = whole["captions"][..., 0] - 2  # the index of the caption
    np.testing.assert_array_equal(np.sort(whole["image_labels"]), [[3, 5, 7]] * 60)
    np.testing.assert_array_equal(classes[shown], whole["image_labels"])
    np.testing.assert_array_equal(records.caption_image[drawn], shown)
    np.testing.assert_array_equal(whole["caption_labels"], whole["image_labels"])
    assert set(shown.ravel()) == set(range(6))


def test_an_epoch_has_every_caption_once_and_each_epoch_its_own_order(
    toy_records, tokenizer, cached
):
    per_epoch = toy_records.num_captions // 5
    assert per_epoch * 5 == toy_records.num_captions
    whole = _collect(
        batches.image_caption_pairs(
            toy_records, tokenizer, cached, batch_size=5, num_steps=2 * per_epoch
        )
    )
    ids = captions.token_ids(tokenizer, toy_records.captions)
    epochs = whole["captions"].reshape(2, -1, 24)
    for epoch in epochs:
        assert sorted(map(bytes, epoch)) == sorted(map(bytes, ids))
    assert (epochs[0] != epochs[1]).any()
    assert (epochs[0] != ids).any()


@pytest.fixture
def uneven():
    """Records of 6 images with 3, 4, 5, … captions in mixed order, each caption a word of its own,
    and features that are the number of the image."""
    owner = np.random.default_rng(0).permutation(np.repeat(np.arange(6), np.arange(3, 9)))
    words = [f"word{index}" for index in range(len(owner))]
    records = Records("uneven", [f"{i}" for i in range(6)], words, owner, range(6), range(6))
    source = sources.Features(np.arange(6, dtype=np.float32)[:, None])
    return records, captions.WordTokenizer(words, max_words=1), source


@pytest.mark.parametrize(("each", "expected"), [(None, 3), (2, 2)])
def test_images_come_with_their_captions(uneven, each, expected):
    records, tokenizer, source = uneven
    dataset = batches.images_with_captions(
        records, tokenizer, source, 3, captions_per_image=each, num_steps=200
    )
    whole = _collect(dataset)
    shown = whole["images"][..., 0].astype(int)
    np.testing.assert_array_equal(shown, whole["image_labels"])
    np.testing.assert_array_equal(np.repeat(shown, expected, 1), whole["caption_labels"])
    drawn = whole["captions"][..., 0] - 2  # the index of the caption, as each is its own word
    np.testing.assert_array_equal(records.caption_image[drawn], whole["caption_labels"])
    for own in drawn.reshape(-1, expected):
        assert len(set(own)) == expected  # no caption twice
    for epoch in shown.reshape(100, 6):
        assert sorted(epoch) == list(range(6))
    # Of an image with more captions than are shown each is as likely.
    last = np.bincount(drawn.ravel())[records.caption_image == 5]
    np.testing.assert_allclose(last, 100 * expected / 8, atol=25)


def _in_order(records, source):
    return list(batches.image_batches(records, source, batch_size=7).as_numpy_iterator())


def test_encoding_keeps_order_and_remainder(toy_records, tokenizer, source, toy_root):
    encoded = _in_order(toy_records, source)
    assert len(encoded[-1]["images"]) == toy_records.num_images % 7 != 0
    labels = np.concatenate([batch["image_labels"] for batch in encoded])
    np.testing.assert_array_equal(labels, toy_records.image_labels)
    dataset = cub.load(toy_root, image_size=32, verbose=False).dataset
    firsts = np.flatnonzero(np.diff(toy_records.caption_image, prepend=-1))
    pairs = [pair["images"] for pair in dataset.as_numpy_iterator()]
    pictures = np.concatenate([batch["images"] for batch in encoded])
    np.testing.assert_allclose(pictures, np.stack([pairs[i] for i in firsts]), atol=0.5)
    texts = list(batches.caption_batches(toy_records, tokenizer, 100).as_numpy_iterator())
    np.testing.assert_array_equal(
        np.concatenate([batch["captions"] for batch in texts]),
        captions.token_ids(tokenizer, toy_records.captions),
    )
    np.testing.assert_array_equal(
        np.concatenate([batch["caption_labels"] for batch in texts]), toy_records.caption_labels
    )


def test_a_class_may_have_several_pairs_of_a_batch(toy_records, tokenizer, source):
    made = batches.class_pairs(
        toy_records, tokenizer, source, batch_size=20, num_steps=3, pairs_per_class=4
    )
    for batch in made.as_numpy_iterator():
        labels, counts = np.unique(batch["caption_labels"], return_counts=True)
        assert len(labels) == 5
        assert set(counts) == {4}
        np.testing.assert_array_equal(batch["image_labels"], batch["caption_labels"])
        assert len(np.unique(batch["captions"], axis=0)) > 5  # drawn one by one


def test_sizes_are_checked(toy_records, tokenizer, cached):
    for size, pairs, message in ((10, 1, "from 1 to the number of pairs"), (8, 3, "divides the 8")):
        with pytest.raises(ValueError, match=message):
            batches.class_pairs(toy_records, tokenizer, cached, size, pairs_per_class=pairs)
