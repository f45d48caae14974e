"""Which parts of a picture are shown, and which words of a sentence."""

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from zoo.data import Augmentation, Records, batches, captions, images, sources
from zoo.data.pipeline.augmentation import RandomCrop, SizeAugmentation
from zoo.data.text.captions import PADDING_ID, UNKNOWN_ID, WordIds
from zoo.images.seeding import step_seed

WIDE = (480, 640)  # height, width: of a 4:3 photo the square in the middle hides a quarter
PAPERS = {"area": RandomCrop(area=(0.08, 1.0)), "sides": RandomCrop(sides=(0.6, 1.0))}


def boxes(crop, height, width, count=2000):
    @tf.function
    def found(draws):
        return tf.map_fn(
            lambda row: tf.stack(crop.box(height, width, row)), draws, fn_output_signature=tf.int32
        )

    return found(crop.draws(step_seed(3, 11), count)).numpy().T


@pytest.fixture(scope="module")
def photo(tmp_path_factory):
    """Red says the column, green the row, and what is outside of the middle square is blue."""
    height, width = WIDE
    picture = np.zeros((height, width, 3), np.uint8)
    picture[..., 0] = np.linspace(0, 255, width)[None]
    picture[..., 1] = np.linspace(0, 255, height)[:, None]
    picture[:, :80, 2] = picture[:, -80:, 2] = 255
    path = tmp_path_factory.mktemp("photos") / "wide.png"
    Image.fromarray(picture).save(path)
    return path


@pytest.fixture(scope="module")
def records(photo):
    return Records(
        name="one photo",
        image_paths=[str(photo)] * 4,
        captions=[f"caption {i}" for i in range(8)],
        caption_image=np.repeat(np.arange(4), 2),
        image_labels=np.arange(4),
        image_ids=list(range(4)),
    )


@pytest.mark.parametrize("name", PAPERS)
@pytest.mark.parametrize("size", [WIDE, (100, 1000), (1, 1)])
def test_parts_lie_inside_and_reach_every_edge(name, size):
    height, width = size
    top, left, tall, wide = boxes(PAPERS[name], height, width)
    assert (tall >= 1).all()
    assert (wide >= 1).all()
    assert (top >= 0).all()
    assert (left >= 0).all()
    assert (top + tall <= height).all()
    assert (left + wide <= width).all()
    if min(size) >= 100 and name == "sides":
        assert min(top.min(), left.min()) == 0
        assert (top + tall).max() >= height - 1
        assert (left + wide).max() >= width - 1


def torchvision(rng, height, width):
    for _ in range(10):
        area = height * width * rng.uniform(0.08, 1.0)
        ratio = np.exp(rng.uniform(np.log(3 / 4), np.log(4 / 3)))
        wide, tall = round(np.sqrt(area * ratio)), round(np.sqrt(area / ratio))
        if 0 < wide <= width and 0 < tall <= height:
            return tall, wide
    if width / height < 3 / 4:
        return round(width * 4 / 3), width
    return (height, round(height * 4 / 3)) if width / height > 4 / 3 else (height, width)


@pytest.mark.parametrize("size", [WIDE, (100, 400)])
def test_by_area_the_parts_are_those_of_torchvision(size):
    """The same deciles of area and of shape, of 4,000 draws each."""
    rng = np.random.default_rng(0)
    expected = np.array([torchvision(rng, *size) for _ in range(4000)])
    _, _, tall, wide = boxes(PAPERS["area"], *size, count=4000)
    deciles = np.arange(0.1, 1.0, 0.1)
    for ours, theirs in (
        (tall * wide / np.prod(size), np.prod(expected, axis=1) / np.prod(size)),
        (np.log(wide / tall), np.log(expected[:, 1] / expected[:, 0])),
    ):
        found, wanted = np.quantile(ours, deciles), np.quantile(theirs, deciles)
        np.testing.assert_allclose(found, wanted, atol=0.04)


def test_a_very_long_picture_shows_its_middle():
    """Where no draw fits: all of the height, the widest part within the bounds."""
    top, left, tall, wide = boxes(RandomCrop(area=(1.0, 1.0)), 100, 1000, count=5)
    np.testing.assert_array_equal(
        np.stack([top, left, tall, wide], axis=1), [[0, 433, 100, 133]] * 5
    )


def test_by_sides_the_part_has_the_pictures_shape():
    _, _, tall, wide = boxes(PAPERS["sides"], *WIDE)
    share = tall / WIDE[0]
    np.testing.assert_allclose(wide / WIDE[1], share, atol=0.01)
    assert 0.595 < share.min() < 0.62
    assert 0.98 < share.max() <= 1.0
    assert share.mean() == pytest.approx(0.8, abs=0.01)


def test_a_part_is_the_box_of_the_original_stretched(photo):
    crop = PAPERS["area"]
    contents = tf.io.read_file(str(photo))
    for numbers in crop.draws(step_seed(0, 1), 5):
        top, left, tall, wide = (int(value) for value in crop.box(*WIDE, numbers))
        part = crop.cut(contents, 32, numbers).numpy()
        assert part.shape == (32, 32, 3)
        whole = np.asarray(Image.open(photo))[top : top + tall, left : left + wide]
        expected = Image.fromarray(whole).resize((32, 32), Image.BILINEAR)
        np.testing.assert_allclose(part, expected, atol=2)


def test_training_sees_the_edges_of_a_photo(records):
    source = sources.Pictures(records, 16)  # in memory each is cut to its middle
    tokenizer = captions.word_tokenizer(records.captions)
    options = {"batch_size": 4, "num_steps": 16, "seed": 1}
    for name, crop in (("none", None), *PAPERS.items()):
        stream = batches.image_caption_pairs(
            records, tokenizer, source, augmentation=Augmentation(crop=crop), **options
        )
        shown = np.concatenate([batch["images"] for batch in stream])
        assert (shown[..., 2] > 128).any() == (name != "none")
        if crop is not None:
            assert shown[..., 0].min() < 10
            assert shown[..., 0].max() > 245


def test_what_the_papers_evaluate_on(photo):
    """PCME and VSE++: 256, then the middle 224 × 224; PCME++ and VSE∞: all of it, stretched."""
    contents = tf.io.read_file(str(photo))
    picture = Image.open(photo)
    middle = picture.resize((341, 256), Image.BILINEAR).crop((58, 16, 282, 240))
    found = images.prepare(contents, 224, "crop", 224 / 256)
    np.testing.assert_allclose(found, middle, atol=4)
    stretched = picture.resize((224, 224), Image.BILINEAR)
    found = images.prepare(contents, 224, "stretch").numpy()
    np.testing.assert_allclose(found, stretched, atol=2)
    assert (found[:, [0, -1], 2] > 250).all()


START, END = 2, 3
WORDS = WordIds(first=10, end=1000, special=(START, END))
ROWS, LENGTH = 2000, 25
RATE = 0.3


@pytest.fixture(scope="module")
def before():
    ids = np.full((ROWS, LENGTH), 9, "int32")  # not one of the random words
    ids[:, 0], ids[:, 21], ids[:, 22:] = START, END, PADDING_ID
    return ids


@pytest.fixture(scope="module")
def after(before):
    augmentation = SizeAugmentation(word_dropping=RATE)
    return augmentation.on_captions(tf.constant(before), step_seed(0, 3), WORDS).numpy()


def test_lost_words_are_half_masked_a_tenth_replaced_and_the_rest_deleted(after):
    words = 20 * ROWS
    masked, kept = (after == UNKNOWN_ID).sum() / words, (after == 9).sum() / words
    replaced = ((after >= WORDS.first) & (after < WORDS.end)).sum() / words
    deviation = 4 * np.sqrt(0.25 / words)
    assert masked == pytest.approx(0.5 * RATE, abs=deviation)
    assert replaced == pytest.approx(0.1 * RATE, abs=deviation)
    assert 1 - masked - kept - replaced == pytest.approx(0.4 * RATE, abs=deviation)


def test_start_and_end_stay_and_the_rest_moves_up(after):
    assert (after[:, 0] == START).all()
    assert ((after == END).sum(axis=1) == 1).all()
    place = (after == END).argmax(axis=1)
    assert all((row[end + 1 :] == PADDING_ID).all() for row, end in zip(after, place, strict=True))
    assert all((row[:end] != PADDING_ID).all() for row, end in zip(after, place, strict=True))


def test_nothing_is_lost_at_a_rate_of_nothing(before):
    kept = SizeAugmentation(word_dropping=0.0).on_captions(before, step_seed(0, 3), WORDS)
    np.testing.assert_array_equal(kept, before)
