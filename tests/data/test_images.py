"""Pictures: decoding every kind, resizing, and the augmentations."""

import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image, ImageOps

from zoo.data import images
from zoo.files import decoding as pictures
from zoo.files.seeding import step_seed


def _picture(height=40, width=60):
    y, x = np.mgrid[:height, :width]
    return np.stack([4 * x, 6 * y, 2 * (x + y)], -1).clip(0, 255).astype(np.uint8)


def _encode(picture, **options):
    buffer = io.BytesIO()
    picture.save(buffer, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "LA", "P", "1"])
def test_png_of_every_mode_is_rgb(mode):
    picture = Image.fromarray(_picture()).convert(mode)
    decoded = images.decode(_encode(picture, format="PNG"))
    np.testing.assert_array_equal(decoded, np.asarray(picture.convert("RGB")))


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
@pytest.mark.parametrize("progressive", [False, True])
def test_jpeg_of_every_mode_is_rgb(mode, progressive):
    picture = Image.fromarray(_picture()).convert(mode)
    data = _encode(picture, format="JPEG", quality=95, progressive=progressive)
    with Image.open(io.BytesIO(data)) as pillow:
        expected = np.asarray(pillow.convert("RGB")).astype(int)
    # CMYK is converted by each library's own formula.
    assert np.abs(images.decode(data).numpy() - expected).max() <= (1 if mode == "CMYK" else 0)


def test_sixteen_bits_and_animations():
    deep = (np.arange(64 * 64).reshape(64, 64) * 16).astype(np.uint16)
    decoded = images.decode(_encode(Image.fromarray(deep), format="PNG")).numpy()
    np.testing.assert_allclose(decoded[..., 0], deep / 257, atol=1)
    first, second = Image.fromarray(_picture()), Image.fromarray(255 - _picture())
    for kind in ("GIF", "PNG"):  # an animated PNG, that is
        data = _encode(first, format=kind, save_all=True, append_images=[second])
        with Image.open(io.BytesIO(data)) as pillow:
            assert pillow.n_frames == 2
            expected = np.asarray(pillow.convert("RGB"))
        np.testing.assert_array_equal(images.decode(data), expected)
    lossless = _encode(first, format="WEBP", lossless=True)
    np.testing.assert_array_equal(images.decode(lossless), _picture())


def _oriented(orientation, **options):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return _encode(Image.fromarray(_picture()), format="JPEG", quality=95, exif=exif, **options)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_jpeg_is_turned_as_pillow_turns_it(orientation):
    data = _oriented(orientation)
    with Image.open(io.BytesIO(data)) as pillow:
        expected = np.asarray(ImageOps.exif_transpose(pillow).convert("RGB"))
    np.testing.assert_array_equal(images.decode(data), expected)
    in_graph = tf.data.Dataset.from_tensors(data).map(images.decode)
    np.testing.assert_array_equal(next(iter(in_graph)), expected)


def _with_segments(data, *segments):
    return data[:2] + b"".join(segments) + data[2:]


def _app1(tiff, name=b"Exif\0\0"):
    content = name + tiff
    return b"\xff\xe1" + (len(content) + 2).to_bytes(2, "big") + content


def _tiff(order, kind=3, value=6, tag=0x0112):
    size = {3: 2, 4: 4}[kind]
    number = lambda n, count: n.to_bytes(count, order)  # noqa: E731
    other = number(0x010F, 2) + number(2, 2) + number(3, 4) + b"abc\0"
    entry = number(tag, 2) + number(kind, 2) + number(1, 4) + number(value, size) + bytes(4 - size)
    mark = b"II*\0" if order == "little" else b"MM\0*"
    return mark + number(8, 4) + number(2, 2) + other + entry + bytes(4)


@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("kind", [3, 4])
def test_both_byte_orders_and_segments_before(order, kind):
    plain = _encode(Image.fromarray(_picture()), format="JPEG")
    xmp = _app1(b"<x:xmpmeta/>", b"http://ns.adobe.com/xap/1.0/\0")
    comment = b"\xff\xfe\x00\x06abcd"
    data = _with_segments(plain, comment, xmp, _app1(_tiff(order, kind)))
    with Image.open(io.BytesIO(data)) as pillow:
        assert pillow.getexif()[0x0112] == 6
    np.testing.assert_array_equal(images.decode(data), np.rot90(images.decode(plain), -1))


@pytest.mark.parametrize(
    "tiff",
    [
        b"",
        b"MM\0*",
        b"nonsense that is no TIFF at all, and some more of it",
        _tiff("big")[:-12],
        _tiff("big", value=9),
        _tiff("big", value=0),
        _tiff("big", tag=0x0113),
        b"MM\0*\xff\xff\xff\xff" + bytes(30),
        b"II*\0\x08\0\0\0\xff\xff" + bytes(30),
    ],
)
def test_damaged_exif_data_turn_nothing(tiff):
    plain = _encode(Image.fromarray(_picture()), format="JPEG")
    data = _with_segments(plain, _app1(tiff))
    np.testing.assert_array_equal(images.decode(data), images.decode(plain))


def one_of_each_format():
    """`{format: bytes}`, a photo in each format of `zoo.files.decoding.FORMATS`."""
    photo = Image.fromarray(_picture())
    return {kind: _encode(photo, format=kind) for kind in pictures.FORMATS}


def test_every_format_is_checked_and_decoded(tmp_path):
    for kind, data in one_of_each_format().items():
        (tmp_path / "photo").write_bytes(data)
        assert pictures.check_images([tmp_path / "photo"]) == [None], kind
        error = np.abs(images.decode(data).numpy().astype(int) - _picture()).mean()
        assert error < 8, kind  # a palette and the compressions lose that much


def test_suffixes_are_those_of_the_formats():
    known = Image.registered_extensions()
    assert {known[suffix] for suffix in pictures.SUFFIXES} | {"MPO"} == set(pictures.FORMATS)


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


@pytest.mark.parametrize("shape", [(1, 1), (1, 500), (3, 2)])
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


def test_cutout_works_on_feature_maps():
    erased = images.cutout(tf.ones((16, 7, 7, 5)), 1.0, SEED, fill=0.0).numpy()
    assert (erased == 0).any((1, 2, 3)).all()
    assert (erased == 1).any((1, 2, 3)).all()


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_erase_takes_the_share(share):
    gone = (images.erase(BATCH, share, SEED, fill=0.0).numpy() == 0).all(-1)
    np.testing.assert_allclose(gone.mean((1, 2)), share, atol=0.01)
