"""A photo gives the model the same pixels whichever way it comes."""

import base64
import io
import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import forked
from export import requests
from export.signatures import Signatures
from pixel_model import SIZE, pixel_model
from zoo import evaluation
from zoo.collection import encode_items, pictures
from zoo.data import batches, datasets, images, own_pairs, sources
from zoo.evaluation import encode as encode_split
from zoo.files.decoding import FORMATS
from zoo.models import Tower

pytestmark = pytest.mark.usefixtures("optimized_graphs")


@pytest.fixture
def table(tmp_path):
    """A table of one photo in each format, and of a JPEG that lies on its side."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (7, 9, 3), dtype=np.uint8)
    photo = Image.fromarray(coarse).resize((43, 31), Image.Resampling.BICUBIC)
    exif = Image.Exif()
    exif[0x0112] = 6
    photo.save(tmp_path / "side.jpg", exif=exif)
    for kind in FORMATS:
        photo.save(tmp_path / f"photo.{kind.lower()}", format=kind)
    names = ["side.jpg", *(f"photo.{kind.lower()}" for kind in FORMATS)]
    rows = "".join(f"{name},a photo\n" for name in names)
    (tmp_path / "pairs.csv").write_text("image,caption\n" + rows)
    return tmp_path / "pairs.csv"


def test_every_way_gives_the_same_pixels(table):
    """In a process of its own, where the functions of `tf.data` are optimised too."""
    done = forked.run(EVERY_WAY, Path(__file__).parent, table)
    assert done.returncode == 0, done.stderr


EVERY_WAY = """
import sys
from pathlib import Path
folder, table = map(Path, sys.argv[1:])
sys.path.insert(0, str(folder))
import test_same_pixels
test_same_pixels.check_every_way(table)
"""


def check_every_way(table):
    model = pixel_model()
    records, dataset = own_pairs.load(table, image_size=SIZE, verbose=False)
    paths = list(records.image_paths)
    contents = [tf.io.read_file(path) for path in paths]
    expected = np.stack([images.prepare(one, SIZE) for one in contents]).astype(np.float32)
    assert len(np.unique(expected[0])) > 9

    def pairs(given):
        return np.stack([pair["images"] for pair in given.as_numpy_iterator()])

    def trained(cache):
        source = sources.Pictures(records, SIZE, cache=cache)
        stream = batches.image_caption_pairs(
            records, model.tokenizer, source, len(paths), num_steps=1
        )
        (batch,) = stream.as_numpy_iterator()
        return batch["images"][np.argsort(batch["image_labels"])]

    def encoded():
        source = sources.Pictures(records, SIZE)
        return encode_split(model, records, source).images["mean"].reshape(expected.shape)

    # Exports take upright JPEG and PNG.
    sent = [row for row, path in enumerate(paths) if path.endswith((".jpeg", ".mpo", ".png"))]
    assert len(sent) == 3

    def served():
        return requests.decoded(tf.gather(contents, sent), SIZE, "crop", 1.0)

    def answered():
        encode = Signatures(model, index=False).concrete()["encode_images"]
        return np.reshape(encode(tf.gather(contents, sent))["mean"], expected[sent].shape)

    def searched():
        found = encode_items(Tower(model, "images"), pictures(paths))
        return found.arrays["mean"].reshape(expected.shape)

    ways = {
        "pairs": lambda: pairs(dataset),
        "training, cached": lambda: trained(True),
        "training, not cached": lambda: trained(False),
        "evaluation": encoded,
        "search": searched,
        "export, decoded": served,
        "export, embedded": answered,
    }
    for name, way in ways.items():
        wanted = expected[sent] if name.startswith("export") else expected
        np.testing.assert_array_equal(way(), wanted, err_msg=name)


def test_the_gallery_shows_a_photo_upright(tmp_path):
    gallery = pytest.importorskip("demo.gallery")
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (64, 32)).save(tmp_path / "side.jpg", exif=exif)

    class One:
        image_paths = [tmp_path / "side.jpg"]
        larger = None
        reads_words = True

    uri = gallery.Gallery.thumbnail.__wrapped__(One(), 0)
    with Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))) as shown:
        assert shown.height > shown.width


@pytest.mark.parametrize(("resize", "fraction"), [("stretch", 1.0), ("crop", 0.5)])
def test_search_demo_and_export_resize_as_the_run_did(table, tmp_path, resize, fraction):
    folder = tmp_path / "run"
    folder.mkdir()
    data = {"loader": "pairs", "root": str(table.parent), "image_size": SIZE, "resize": resize}
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
    np.testing.assert_array_equal(np.reshape(found, expected.shape), expected)
    tower = Tower(model, "images", **resizing)
    np.testing.assert_array_equal(tower.fitted(contents.numpy()), expected)
    assert evaluation.resizing_of(tmp_path / "model.keras") == {
        "mode": "crop",
        "crop_fraction": 1.0,
    }
    assert evaluation.resizing_of("toy_birds_pcme")["mode"] == "crop"
