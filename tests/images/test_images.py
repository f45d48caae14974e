import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from halo_search.files.decoding import fit
from zoo.data import images
from zoo.images.seeding import step_seed


def _picture(height=40, width=60):
    y, x = np.mgrid[:height, :width]
    return np.stack([4 * x, 6 * y, 2 * (x + y)], -1).clip(0, 255).astype(np.uint8)


def _encode(picture, **options):
    buffer = io.BytesIO()
    picture.save(buffer, **options)
    return buffer.getvalue()


def _with_segments(data, *segments):
    return data[:2] + b"".join(segments) + data[2:]


def _app1(tiff, name=b"Exif\0\0"):
    content = name + tiff
    return b"\xff\xe1" + (len(content) + 2).to_bytes(2, "big") + content


@pytest.mark.parametrize(
    "tiff", [b"", b"MM\0*", b"nonsense that is no TIFF at all, and some more of it"]
)
def test_damaged_exif_data_turn_nothing(tiff):
    plain = _encode(Image.fromarray(_picture()), format="JPEG")
    data = _with_segments(plain, _app1(tiff))
    np.testing.assert_array_equal(images.decode(data), images.decode(plain))


def test_resize_takes_the_middle_or_stretches():
    picture = tf.constant(_picture(40, 80))
    middle = images.resize(picture, 20)
    np.testing.assert_allclose(
        middle, tf.image.resize(picture[:, 20:60], (20, 20), antialias=True), atol=1e-3
    )
    stretched = images.resize(picture, 20, mode="stretch")
    assert stretched[0, 0, 0] < middle[0, 0, 0]
    inner = images.resize(picture, 20, crop_fraction=0.5)
    np.testing.assert_allclose(inner, picture[10:30, 30:50], atol=1e-3)
    with pytest.raises(ValueError, match="`mode` must be one of"):
        images.resize(picture, 20, mode="squeeze")


@pytest.mark.parametrize("shape", [(1, 1), (1, 500)])
def test_resize_of_tiny_pictures(shape):
    for mode in ("crop", "stretch"):
        out = images.resize(tf.fill((*shape, 3), 77), 8, mode=mode, crop_fraction=0.875)
        np.testing.assert_allclose(out, np.full((8, 8, 3), 77.0), atol=1e-3)


BATCH = tf.random.stateless_uniform((64, 32, 32, 3), (1, 2), 1.0, 255.0)
SEED = step_seed(3, 11)
OPERATIONS = {
    "flip": lambda batch, seed, shard: images.random_flip(batch, seed, shard),
    "cutout": lambda batch, seed, shard: images.cutout(batch, 0.5, seed, shard=shard),
    "erase": lambda batch, seed, shard: images.erase(batch, 0.2, seed, shard=shard),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_depend_on_the_seed_alone_and_shards_join_to_the_whole(name):
    operation = OPERATIONS[name]
    whole = operation(BATCH, SEED, (0, 1)).numpy()
    assert whole.shape == BATCH.shape
    np.testing.assert_array_equal(tf.function(operation)(BATCH, SEED, (0, 1)), whole)
    halves = [operation(BATCH[32 * i : 32 * (i + 1)], SEED, (i, 2)) for i in range(2)]
    np.testing.assert_array_equal(np.concatenate(halves), whole)
    assert (operation(BATCH, step_seed(3, 12), (0, 1)).numpy() != whole).any()
    assert (whole != BATCH.numpy()).any()


def test_flip_mirrors_about_half():
    flipped = images.random_flip(BATCH, SEED).numpy()
    mirrored = (flipped == BATCH.numpy()[:, :, ::-1]).all((1, 2, 3))
    same = (flipped == BATCH.numpy()).all((1, 2, 3))
    assert (mirrored ^ same).all()
    assert 20 <= mirrored.sum() <= 44


def test_cutout_erases_one_rectangle_of_the_right_size_in_the_right_share():
    batch = tf.repeat(BATCH, 8, axis=0)
    erased = images.cutout(batch, 0.2, SEED, fill=0.0).numpy()
    gone = (erased == 0.0).all(-1)
    assert ((erased == batch.numpy()) | (erased == 0.0)).all()
    touched = gone.any((1, 2))
    assert touched.mean() == pytest.approx(0.2, abs=0.05)
    for mask in gone[touched]:
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        assert mask.sum() == len(rows) * len(columns)
        assert 0.01 <= mask.mean() <= 0.36
        assert len(rows) == rows[-1] - rows[0] + 1


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_erase_takes_the_share(share):
    gone = (images.erase(BATCH, share, SEED, fill=0.0).numpy() == 0).all(-1)
    np.testing.assert_allclose(gone.mean((1, 2)), share, atol=0.01)


SHAPES = (480, 640), (64, 64), (37, 211), (300, 31), (1, 1), (1, 90), (1200, 900), (256, 257)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("mode", "fraction"), [("crop", 1.0), ("crop", 0.875), ("stretch", 1.0)])
def test_pixels_are_those_of_the_graph(shape, mode, fraction):
    picture = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype="uint8")
    for size in (64, 224):
        found = fit(picture, size, mode, fraction).astype(int)
        expected = images.fit(picture, size, mode, fraction).numpy().astype(int)
        assert found.shape == (size, size, 3)
        assert np.abs(found - expected).max() <= 1  # halves that a sum in another order rounds
        assert (found != expected).mean() < 1e-2


def test_one_colour_stays():
    assert np.unique(fit(np.full((333, 77, 3), 201, "uint8"), 50)) == [201]
