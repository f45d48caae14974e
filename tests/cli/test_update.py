"""Indexes that follow their source: new, changed and removed items, and a model replaced."""

import io
import json
import os
import shutil
import sys
import time

import keras
import numpy as np
import pytest
from PIL import Image

import zoo
from colour_model import with_words
from halo_search import collection
from halo_search.cli.search import main
from halo_search.collection import Collection, encoding
from halo_search.errors import InputError
from halo_search.files import folders
from halo_search.index import built

pytestmark = pytest.mark.usefixtures("packaged_once", "without_towers")

CAPTIONS = ["red", "green", "blue"]


@pytest.fixture(scope="module")
def saved_model(tmp_path_factory):
    """A DualEncoder whose embedding of a picture is its mean colour, by a layer of weights."""
    image = keras.Input((8, 8, 3))
    mean = keras.layers.GlobalAveragePooling2D()(keras.layers.Rescaling(1 / 255)(image))
    mean = keras.layers.Dense(3, kernel_initializer="identity", name="colour")(mean)
    model = with_words(keras.Model(image, {"mean": mean}), CAPTIONS, max_words=4)
    folder = tmp_path_factory.mktemp("model") / "model"
    zoo.save_preset(model, folder)
    return folder


@pytest.fixture
def model_folder(saved_model, tmp_path):
    return shutil.copytree(saved_model, tmp_path / "model")


def paint(folder, **colours):
    folder.mkdir(exist_ok=True)
    for name, colour in colours.items():
        Image.new("RGB", (12, 10), colour).save(folder / f"{name}.png")


@pytest.fixture
def photos(tmp_path):
    paint(tmp_path / "photos", b=(250, 0, 0), d=(0, 250, 0), f=(0, 0, 250))
    return tmp_path / "photos"


def replace_weights(folder, kernel):
    model = zoo.from_preset(folder)
    model.image_encoder.get_layer("colour").kernel.assign(kernel)
    shutil.rmtree(folder)
    zoo.save_preset(model, folder)


@pytest.fixture
def encoded(monkeypatch):
    """The names of what was encoded, in order."""
    names, call = [], encoding.encode_items

    def noted(tower, items, *rest):
        names.extend(items.names)
        return call(tower, items, *rest)

    monkeypatch.setattr(encoding, "encode_items", noted)
    return names


def build(model, source, out, *more):
    main(["build", str(source), str(out), "--model", str(model), *more])


def vectors(out):
    """Of the index's items by their names, in the order of these."""
    setup, names, index, *_ = built.load(out)
    assert names.keys() == set(index.ids.tolist())
    whole = Collection(out / setup["parts"]["folder"], setup["parts"]["files"]).whole(sorted(names))
    assert whole.names == [names[one] for one in sorted(names)]
    return dict(sorted(zip(whole.names, whole.arrays["mean"], strict=True)))


def test_a_grown_folder_encodes_what_is_new(model_folder, photos, tmp_path, encoded, capsys):
    out = tmp_path / "out"
    build(model_folder, photos, out, "--shard-size", "2")
    before = vectors(out)
    encoded.clear()
    build(model_folder, photos, out, "--shard-size", "2")
    assert not encoded
    paint(photos, a=(9, 9, 9), e=(99, 0, 99))
    capsys.readouterr()
    build(model_folder, photos, out, "--shard-size", "2")
    assert "2 new, 0 changed, 0 gone" in capsys.readouterr().out
    assert sorted(encoded) == ["a.png", "e.png"]
    fresh = tmp_path / "fresh"
    build(model_folder, photos, fresh, "--shard-size", "2")
    after, expected = vectors(out), vectors(fresh)
    assert list(after) == list(expected) == ["a.png", "b.png", "d.png", "e.png", "f.png"]
    for name, vector in expected.items():
        np.testing.assert_allclose(after[name], vector, atol=1e-6)
    for name, vector in before.items():
        np.testing.assert_array_equal(after[name], vector)
    capsys.readouterr()
    main(["query", str(out), "--image", str(photos / "e.png"), "-k", "1"])
    assert "e.png" in capsys.readouterr().out
    assert sorted(path.name for path in out.iterdir() if path.is_dir()) == ["embeddings", "index"]


def test_a_replaced_picture_is_noticed(model_folder, photos, tmp_path, encoded, capsys):
    out = tmp_path / "out"
    build(model_folder, photos, out)
    before = vectors(out)
    encoded.clear()
    paint(photos, d=(7, 8, 9))
    (photos / "f.png").unlink()
    capsys.readouterr()
    main(["update", str(out)])
    assert "0 new, 1 changed, 1 gone; changed: d.png" in capsys.readouterr().out
    assert encoded == ["d.png"]
    after = vectors(out)
    assert list(after) == ["b.png", "d.png"]
    np.testing.assert_array_equal(after["b.png"], before["b.png"])
    np.testing.assert_allclose(after["d.png"], np.array([7, 8, 9]) / 255, atol=1e-3)
    moved = tmp_path / "moved"
    photos.rename(moved)
    encoded.clear()
    main(["update", str(out), str(moved)])
    assert not encoded
    assert list(vectors(out)) == ["b.png", "d.png"]


@pytest.mark.parametrize("later", [1, -10_000_000])
def test_a_picture_of_the_future_is_noticed_when_it_changes(
    later, model_folder, photos, tmp_path, encoded
):
    """A camera's clock may be wrong: any other time is a change, of pictures of equal size too."""
    picture = photos / "d.bmp"
    Image.new("RGB", (12, 10), (0, 250, 0)).save(picture)
    future = time.time() + 400 * 86_400
    os.utime(picture, (future, future))
    out, size = tmp_path / "out", picture.stat().st_size
    build(model_folder, photos, out)
    encoded.clear()
    main(["update", str(out)])
    assert encoded == []
    Image.new("RGB", (12, 10), (7, 8, 9)).save(picture)
    os.utime(picture, (future + later, future + later))
    assert picture.stat().st_size == size
    main(["update", str(out)])
    assert encoded == ["d.bmp"]
    np.testing.assert_allclose(vectors(out)["d.bmp"], np.array([7, 8, 9]) / 255, atol=1e-3)


def test_a_replaced_model_encodes_everything_again(model_folder, photos, tmp_path, encoded):
    out = tmp_path / "out"
    build(model_folder, photos, out)
    replace_weights(model_folder, 2 * np.eye(3))
    encoded.clear()
    build(model_folder, photos, out)
    assert len(encoded) == 3
    assert sorted(path.name for path in out.iterdir() if path.is_dir()) == [
        "embeddings-2",
        "index-2",
    ]
    np.testing.assert_allclose(vectors(out)["b.png"], [500 / 255, 0, 0], atol=1e-3)


def test_an_update_needs_a_source(model_folder, photos, tmp_path):
    parts, out = str(tmp_path / "parts"), tmp_path / "out"
    main(["encode", str(photos), parts, "--model", str(model_folder)])
    main(["index", parts, str(out)])
    with pytest.raises(InputError, match="does not know its source"):
        main(["update", str(out)])
    with pytest.raises(InputError, match="expected what `build` wrote"):
        main(["update", str(tmp_path / "nowhere")])


def test_one_build_at_a_time(model_folder, photos, tmp_path):
    with (
        built.locked(tmp_path / "out"),
        pytest.raises(InputError, match="another process is building there"),
    ):
        build(model_folder, photos, tmp_path / "out")


def test_odd_names_are_indexed_under_a_name_that_can_be_printed(
    model_folder, photos, tmp_path, capsys
):
    out = tmp_path / "out"
    for name in (b"caf\xe9.png", b"two\nlines.png", "u\u2028v.png".encode()):
        shutil.copy(photos / "b.png", os.path.join(os.fsencode(photos), name))
    build(model_folder, photos, out)
    expected = ["b.png", "caf\\xe9.png", "d.png", "f.png", "two\\nlines.png", "u\\u2028v.png"]
    assert sorted(vectors(out)) == expected
    capsys.readouterr()
    main(["query", str(out), "red", "-k", "6"])
    printed = capsys.readouterr().out
    rows = [line for line in printed.splitlines() if ".png" in line]
    assert sorted(row.split()[-1] for row in rows) == expected
    retriever = zoo.Retriever.build(zoo.from_preset(model_folder), photos)
    assert sorted(retriever.ask("red", 6).names) == expected


def test_skip_bad_counts_and_lists_what_it_leaves_out(model_folder, photos, tmp_path, capsys):
    out = tmp_path / "out"
    (photos / "c.png").write_bytes((photos / "b.png").read_bytes()[:-20])
    (photos / "e.png").write_bytes(b"")
    build(model_folder, photos, out, "--skip-bad")
    said = f"{out}: 5 seen, 3 taken, 2 left (2 cannot be read); see {out / 'skipped.jsonl'}"
    assert said in capsys.readouterr().out
    rows = [json.loads(line) for line in (out / "skipped.jsonl").read_text().splitlines()]
    assert [(row["where"], row["why"]) for row in rows] == [
        ("c.png", "a damaged image"),
        ("e.png", "an empty file"),
    ]
    assert all(row.keys() == {"data", "kind", "where", "why"} for row in rows)
    paint(photos, c=(1, 2, 3), e=(3, 2, 1))
    main(["update", str(out)])
    assert "5 seen, 5 taken, 0 left\n" in capsys.readouterr().out
    assert (out / "skipped.jsonl").read_text() == ""


def _closed(photos, monkeypatch):
    real = os.scandir

    def scandir(path):
        if os.path.basename(path) == "shut":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)  # a superuser may enter every folder


def _hidden(folder):
    folder.mkdir()
    (folder / "x.png").touch()


@pytest.mark.parametrize(
    ("make", "left"),
    [
        (lambda p, _: (p / "l").symlink_to(p / "d.png"), {"no suffix": 1}),
        (lambda p, _: (p / "l.png").symlink_to(p / "gone.png"), {"broken link": 1}),
        (lambda p, _: (p / "l.png").symlink_to(p / "l.png"), {"broken link": 1}),
        (lambda p, _: (p / "l").symlink_to(p), {"link to a folder": 1}),
        (lambda p, _: os.mkfifo(p / "l.png"), {"not a file": 1}),
        (lambda p, _: (p / "shut").mkdir() or _closed(p, _), {"permission denied": 1}),
        (lambda p, _: [(p / n).write_bytes(b"") for n in ("a.tar", "b.TAR")], {".tar": 2}),
        (lambda p, _: (p / "\n.\u2028").write_bytes(b""), {".\\u2028": 1}),
        (
            lambda p, _: [_hidden(p / f) for f in ("@eaDir", ".thumbnails", "__MACOSX")],
            {"hidden": 3},
        ),
        (lambda p, _: (p / ".b.png.icloud").write_bytes(b"x"), {folders.NOT_HERE: 1}),
        (lambda p, _: (p / "._b.png").write_bytes(b"\0\5\26\7"), {"hidden": 1}),  # of macOS
    ],
)
def test_what_is_not_taken_is_counted_and_named(photos, make, left, monkeypatch):
    make(photos, monkeypatch)
    items = collection.pictures(photos)
    assert (items.names, items.left) == (["b.png", "d.png", "f.png"], left)
    assert items.seen == len(items) + len(items.others) == 3 + sum(left.values())
    for path in photos.glob("*.png"):
        path.unlink()
    with pytest.raises(InputError, match=r"holds no image .* taken, .* left"):
        collection.pictures(photos)


def test_an_update_asks_before_it_drops_more_than_half(
    model_folder, photos, tmp_path, capsys, monkeypatch
):
    out = tmp_path / "out"
    build(model_folder, photos, out)
    (photos / "notes.txt").touch()
    for name in "bd":
        (photos / f"{name}.png").rename(tmp_path / name)
    for refused in (["update", str(out)], ["update", str(out), str(photos)]):
        with pytest.raises(InputError, match=r"2 of 3 items are not in .*; drop them with --yes"):
            main(refused)
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    sys.stdin.isatty = lambda: True
    with pytest.raises(InputError, match="nothing was changed"):
        main(["update", str(out)])
    assert len(vectors(out)) == 3
    capsys.readouterr()
    main(["update", str(out), "--yes", "--json"])
    said = json.loads(capsys.readouterr().out)
    assert said == {"seen": 2, "taken": 1, "left": {".txt": 1}, "items": 1}
    (photos / "f.png").unlink()
    with pytest.raises(InputError, match="holds no image"):
        main(["update", str(out), "--yes"])
    assert list(vectors(out)) == ["f.png"]
