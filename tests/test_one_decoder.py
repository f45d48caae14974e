"""One picture, one decoder: format by door by oddity, the same pixels or a refusal by name."""

import ast
import base64
import io
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import odd_pictures
from export import requests
from export.signatures import Signatures
from halo_search.collection import encode_items, pictures
from halo_search.errors import InputError
from halo_search.files.decoding import check_images, decoded
from halo_search.server.sent_pictures import picture_of
from pairs import load_pairs
from pixel_model import SIZE, pixel_model
from zoo import evaluation
from zoo.answering import KerasModel
from zoo.data import batches, datasets, images, sources
from zoo.models import Tower

FILES = odd_pictures.files()
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    for name, (contents, _) in FILES.items():
        (folder / name).write_bytes(contents)
    return folder


@pytest.fixture(scope="module")
def tower():
    return Tower(pixel_model(), "images")


def _fed(contents):
    return images.fit(decoded(contents), SIZE).numpy()


@pytest.mark.parametrize(
    "name", [name for name, (_, pixels) in FILES.items() if pixels is not None]
)
def test_a_picture_has_the_pixels_that_its_file_holds(name):
    contents, pixels = FILES[name]
    np.testing.assert_array_equal(decoded(contents), pixels)


@pytest.mark.parametrize("name", FILES)
def test_files_bytes_pillow_and_graphs_agree(name, folder):
    contents = FILES[name][0]
    pixels = decoded(contents)
    assert pixels.dtype == np.uint8
    assert len(np.unique(pixels)) > 1
    np.testing.assert_array_equal(decoded(folder / name), pixels)
    np.testing.assert_array_equal(decoded(Image.open(io.BytesIO(contents))), pixels)
    np.testing.assert_array_equal(decoded(pixels), pixels)
    np.testing.assert_array_equal(images.decode(contents), pixels)
    np.testing.assert_array_equal(images.read(str(folder / name)), pixels)


def _by_retriever(door):
    def ask(tower, path):
        contents = path.read_bytes()
        given = {
            "path": lambda: path,
            "Pillow": lambda: Image.open(io.BytesIO(contents)),
            "array": lambda: decoded(contents),
            "bytes": lambda: contents,
        }[door]()
        return tower.fitted(given)

    return ask


def _by_files(tower, path):
    return tower.of_files([path])["mean"].reshape(SIZE, SIZE, 3)


def _by_search(tower, path):
    assert check_images([path]) == [None]
    return encode_items(tower, pictures([path])).arrays["mean"].reshape(SIZE, SIZE, 3)


def _by_http(tower, path):
    from demo.limits import DECODERS

    return tower.fitted(picture_of(base64.b64encode(path.read_bytes()).decode(), DECODERS))


def _by_demo(tower, path):
    limits = pytest.importorskip("demo.limits")
    return tower.fitted(limits.picture(path))


DOORS = {
    **{door: _by_retriever(door) for door in ("path", "Pillow", "array", "bytes")},
    "files": _by_files,
    "search": _by_search,
    "HTTP": _by_http,
    "demo": _by_demo,
}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_feeds_the_same_pixels(door, tower, folder):
    for name, (contents, _) in FILES.items():
        got = DOORS[door](tower, folder / name)
        np.testing.assert_array_equal(got, _fed(contents), err_msg=name)


def test_training_evaluation_and_export_feed_the_same_pixels(folder):
    names = [name for name in FILES if "pixel" not in name]  # of a side of one, which no crop has
    quoted = "".join(f'"{name}",a photo\n' for name in names)
    (folder / "pairs.csv").write_text("image,caption\n" + quoted)
    model = pixel_model()
    records, dataset = load_pairs(folder / "pairs.csv", size=SIZE)
    expected = np.stack([_fed(FILES[Path(path).name][0]) for path in records.image_paths])

    def trained(cache):
        source = sources.Pictures(records, SIZE, cache=cache)
        (batch,) = batches.image_caption_pairs(
            records, model.tokenizer, source, len(expected), num_steps=1
        ).as_numpy_iterator()
        return batch["images"][np.argsort(batch["image_labels"])]

    encoded = evaluation.encode(model, records, sources.Pictures(records, SIZE)).images["mean"]
    ways = {
        "pairs": np.stack([pair["images"] for pair in dataset.as_numpy_iterator()]),
        "training, cached": trained(True),
        "training, not cached": trained(False),
        "evaluation": encoded.reshape(expected.shape),
    }
    for name, found in ways.items():
        np.testing.assert_array_equal(found, expected, err_msg=name)
    sent = FILES["RGB.png"][0]
    served = Signatures(model, index=False).concrete()["encode_images"](tf.constant([sent]))
    np.testing.assert_array_equal(np.reshape(served["mean"], expected[0].shape), _fed(sent))


def test_an_export_feeds_the_same_pixels_or_refuses():
    string = tf.TensorSpec((None,), tf.string)
    serve = tf.function(lambda one: requests.decoded(one, SIZE, "crop", 1.0), [string])
    for name, (contents, _) in FILES.items():
        if odd_pictures.refused_by_exports(name):
            with pytest.raises(tf.errors.InvalidArgumentError):
                serve(tf.constant([contents]))
        else:
            pixels = decoded(contents)
            if not odd_pictures.is_upright(name):  # which an export does not turn
                pixels = np.rot90(pixels)
            got = serve(tf.constant([contents]))[0]
            np.testing.assert_array_equal(got, images.fit(pixels, SIZE), err_msg=name)


def _photo(dtype=np.uint8):
    return np.random.default_rng(1).integers(0, 256, (9, 7, 3)).astype(dtype)


PHOTO = _photo()
ARRAYS = {
    "channels first": (np.moveaxis(PHOTO, -1, 0), PHOTO),
    "RGBA": (np.dstack([PHOTO, PHOTO[..., :1]]), PHOTO),
    "grey": (PHOTO[..., 0], np.repeat(PHOTO[..., :1], 3, axis=-1)),
    "floats 0-1": (PHOTO / 255, PHOTO),
    "floats 0-255": (PHOTO.astype(np.float32), PHOTO),
    "whole numbers": (PHOTO.astype(np.int64), PHOTO),
    "16 bits": (PHOTO.astype(np.uint16) * 257, PHOTO),
    "a tensor": (tf.constant(PHOTO), PHOTO),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_taken_as_what_they_plainly_are(name):
    given, expected = ARRAYS[name]
    np.testing.assert_array_equal(decoded(given), expected)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (np.zeros((9, 7, 2), np.uint8), r"received shape \(9, 7, 2\)"),
        (np.zeros((1, 9, 7, 3), np.uint8), r"received shape \(1, 9, 7, 3\)"),
        (_photo(np.float32) / 127.5 - 1, "received -0.9"),
        (np.full((9, 7, 3), np.nan), "received nan to nan"),
        (_photo(np.int64) * 2, "from 0 to 255"),
        (np.full((9, 7, 3), "a"), "array of numbers"),
        (None, "array of numbers"),
        ([[1, 2], [3]], "must be an array; received list"),
        (Image.new("F", (8, 8)), "received Pillow's mode 'F'"),
        (Image.new("L", (9_000, 9_000)), "9000 x 9000 pixels, more than the 64,000,000 allowed"),
        (np.broadcast_to(np.uint8(0), (9_000, 9_000, 3)), "9000 x 9000 pixels, more than"),
        (b"", "an empty file"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not an image"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "found HEIC"),
        (b"<html>404</html>", "not an image"),
        (odd_pictures.twelve_bits(FILES["RGB.jpg"][0]), "a damaged image|not an image"),
        (Path("/nowhere.png"), "/nowhere.png: No such file"),
    ],
)
def test_what_is_not_plainly_a_picture_is_refused_in_a_sentence(given, says):
    with pytest.raises(InputError, match=says) as refused:
        decoded(given)
    assert "\n" not in str(refused.value)


def _other_formats():
    photo = Image.fromarray(_photo()).resize((32, 32))
    for kind in ("TIFF", "ICO", "PCX", "SGI", "TGA", "EPS", "PPM"):
        stream = io.BytesIO()
        photo.save(stream, kind)
        yield kind, stream.getvalue()


def test_other_formats_are_refused_and_start_no_program(monkeypatch, tmp_path):
    def started(*args, **kwargs):
        raise AssertionError(f"started {args}")

    monkeypatch.setattr(subprocess, "Popen", started)
    for kind, contents in _other_formats():
        path = tmp_path / "photo.jpg"
        path.write_bytes(contents)
        (why,) = check_images([path])
        assert why is not None, kind
        for given in (contents, path, Image.open(io.BytesIO(contents))):
            with pytest.raises(InputError):
                decoded(given)


def test_a_picture_is_bounded_before_it_is_decoded():
    whole = FILES["RGB.png"][0]
    with pytest.raises(InputError, match="43 x 31 pixels, more than the 1,000 allowed"):
        decoded(whole, max_pixels=1_000)
    cut = whole[: len(whole) // 2]
    with pytest.raises(InputError, match="43 x 31 pixels"):
        decoded(cut, max_pixels=1_000)
    with pytest.raises(InputError, match="a damaged image"):
        decoded(cut)


def test_only_the_decoder_opens_pictures():
    """`Image.open` without `formats=` starts Ghostscript for some files."""
    found = []
    for part in ("halo_search", "zoo", "demo", "export"):
        for path in (ROOT / part).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Attribute) and ast.unparse(node) == "Image.open":
                    found.append(path.relative_to(ROOT).as_posix())
    assert found == ["halo_search/files/decoding.py"]


def test_the_gallery_shows_a_photo_upright(tmp_path):
    pictures = pytest.importorskip("demo.pictures")
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (64, 32)).save(tmp_path / "side.jpg", exif=exif)
    contents = pictures.Pictures([tmp_path / "side.jpg"]).thumbnail(0)
    with Image.open(io.BytesIO(contents)) as shown:
        assert shown.height > shown.width


@pytest.mark.parametrize(("resize", "fraction"), [("stretch", 1.0), ("crop", 0.5)])
def test_search_and_demo_resize_as_the_run_did(tmp_path, resize, fraction):
    names = ("RGB.png", "L.png", "RGB.bmp")
    for name in names:
        (tmp_path / name).write_bytes(FILES[name][0])
    table = "".join(f"{name},a photo\n" for name in names)
    (tmp_path / "pairs.csv").write_text(f"image,caption\n{table}")
    folder = tmp_path / "run"
    folder.mkdir()
    data = {"loader": "pairs", "root": str(tmp_path), "image_size": SIZE, "resize": resize}
    config = {"settings": {}, "data": {**data, "crop_fraction": fraction}}
    (folder / "config.json").write_text(json.dumps(config))
    resizing = evaluation.resizing_of(folder)
    assert resizing == {"mode": resize, "crop_fraction": fraction}
    split = datasets.open(config["data"], "test")
    (path,) = split.records.image_paths
    contents = tf.io.read_file(path)
    expected = images.prepare(contents, SIZE, resize, fraction).numpy()
    assert (expected != images.prepare(contents, SIZE).numpy()).any()
    np.testing.assert_array_equal(split.picture(0), expected)
    model = pixel_model()
    found = encode_items(Tower(model, "images", **resizing), pictures([path])).arrays["mean"]
    # Towers resize by Pillow, with ONNX and Keras alike: TensorFlow may round a tie otherwise.
    np.testing.assert_allclose(np.reshape(found, expected.shape), expected.astype(float), atol=1)
    tower = Tower(model, "images", **resizing)
    np.testing.assert_allclose(tower.fitted(contents.numpy()), expected.astype(float), atol=1)
    assert evaluation.resizing_of(tmp_path / "model.keras") == {
        "mode": "crop",
        "crop_fraction": 1.0,
    }
    assert evaluation.resizing_of("toy_birds_pcme")["mode"] == "crop"
    model.save(folder / "model.keras")
    assert KerasModel.of(folder).resizing == resizing
