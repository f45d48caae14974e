"""Where model and gallery come from: runs, folders of one's own, and what is wrong with them."""

import contextlib
import functools
import io
import os
import shutil
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import zoo
from demo import opening, page, sources
from demo.__main__ import _private_folder, main
from demo.service import Service
from demo.views import Views
from halo_search.confidence.judge import VERDICTS
from halo_search.errors import InputError
from halo_search.photos import packaged_vectors
from halo_search.towers import Tower
from zoo.models.run_folder import RunFolder

JPEG = b"\xff\xd8\xff"


@pytest.fixture(scope="module", autouse=True)
def _models_are_read_once():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(zoo, "from_preset", functools.cache(zoo.from_preset))
        yield


@pytest.mark.skipif("photos_pfe" not in zoo.list_presets(), reason="no preset of photos here")
def test_it_opens_on_the_packaged_photos_and_encodes_none(monkeypatch):
    monkeypatch.setattr(sources, "_encoded", lambda *args: pytest.fail("a photo was encoded"))
    gallery = sources.load()
    assert (gallery.name, len(gallery.image_paths)) == ("170 photos", 170)
    service = Service(gallery)
    examples = opening.examples(service)
    labels = [one.label for one in examples]
    assert labels == [one for one in ("There", "Several", "Unsure", "Not there") if one in labels]
    assert {"There", "Not there"} <= set(labels)
    asked = {one.label: service.find_images(one.caption) for one in examples}
    assert asked["There"]["verdict"] == "likely"
    assert asked["Not there"]["verdict"] == "nothing matches"
    credit = asked["There"]["results"][0]["credit"]
    assert credit["page"].startswith("https://www.flickr.com/photo.gne?id=")
    assert credit["licence"].startswith("CC BY")
    kept, own = (
        gallery.embeddings["images"],
        gallery.towers["images"].of_files(gallery.image_paths[:4]),
    )
    for name, values in own.items():  # they are kept in half precision
        np.testing.assert_allclose(kept[name][:4], values, rtol=2e-3, atol=2e-4)
    assert packaged_vectors("of another model") is None


def test_a_run_brings_its_held_out_split(gaussians):
    assert len(gaussians.image_names) == 18
    assert len(gaussians.captions) == 180
    assert gaussians.records.num_classes == 3
    own = gaussians.captions_of_image[4]
    assert own == list(range(40, 50))
    assert gaussians.describe(4) == gaussians.captions[40]
    assert not any(character.isdigit() for name in gaussians.image_names for character in name)
    assert gaussians.noun == "bird"
    shown = Image.open(io.BytesIO(gaussians.pictures.large(4)))  # drawn again, not of 64 pixels
    assert min(shown.size) > 200


def test_a_run_on_photos_of_ones_own_beside_it(birds, tmp_path, monkeypatch):
    """`halo train own_pairs --data-dir photos`, then `halo demo runs/photos`: no folder above."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(next((birds / "images").iterdir()), "photos")
    for path in Path("photos").iterdir():
        path.with_suffix(".txt").write_text(f"a bird that is called {path.stem}\n")
    data = {"loader": "pairs", "root": "photos", "image_size": 64, "held_out_share": 0.4}
    run = RunFolder.open(Path("runs/photos"), {}, data=data)
    run.save_model(zoo.from_preset("toy_birds_pfe"))
    gallery = sources.load("runs/photos", cache=tmp_path / "cache")
    assert len(gallery.image_names) == 2
    assert gallery.noun == "photo"
    assert gallery.pictures.thumbnail(0).startswith(JPEG)


def test_a_folder_of_ones_own(birds, tmp_path, capsys):
    photos = tmp_path / "photos"
    shutil.copytree(next((birds / "images").iterdir()), photos / "below")
    (photos / "broken.jpg").write_bytes(b"no image")
    (photos / "notes.txt").write_text("left alone")
    words = tmp_path / "captions.txt"
    words.write_text("a red bird\na bird with <b>black</b> wings\n")
    gallery = sources.load(folder=photos, captions=words, cache=tmp_path / "cache")
    assert len(gallery.image_names) == 6
    assert gallery.captions == ["a red bird", "a bird with <b>black</b> wings"]
    assert "8 seen, 6 taken, 2 left (1 .txt, 1 cannot be read)" in capsys.readouterr().out
    assert gallery.describe(0) == gallery.image_names[0]
    assert gallery.pictures.thumbnail(0).startswith(JPEG)
    assert gallery.noun == "photo"
    answer = Service(gallery).find_images("a small bird with a red crown")
    assert answer["verdict"] in VERDICTS


def test_what_was_encoded_is_read_back(birds, tmp_path, monkeypatch):
    photos = tmp_path / "photos"
    shutil.copytree(next((birds / "images").iterdir()), photos)
    first = sources.load("toy_birds_pfe", folder=photos, cache=tmp_path / "cache")

    def fail(*_):
        raise RuntimeError("encoded again")

    with monkeypatch.context() as patched:
        patched.setattr(Tower, "of_files", fail)
        second = sources.load("toy_birds_pfe", folder=photos, cache=tmp_path / "cache")
        mean = first.embeddings["images"]["mean"]
        np.testing.assert_array_equal(second.embeddings["images"]["mean"], mean)
        next(photos.iterdir()).touch()  # a picture that may have changed
        with pytest.raises(RuntimeError, match="encoded again"):
            sources.load("toy_birds_pfe", folder=photos, cache=tmp_path / "cache")


def test_another_model_shows_the_same_pictures(gaussians, tmp_path):
    other = sources.by_another("toy_birds_pfe", gaussians, tmp_path / "cache")
    assert other.image_paths == gaussians.image_paths
    mean = gaussians.embeddings["images"]["mean"]
    np.testing.assert_allclose(other.embeddings["images"]["mean"], mean, atol=1e-5)
    views = Views([gaussians, other])
    assert len(views.names) == len(set(views.names)) == 2 * len(gaussians.similarity_names)
    assert views.service(views.names[-1]).gallery is other


def test_what_is_missing_is_said_with_a_way_out(tmp_path):
    with pytest.raises(InputError, match="must be one of"):
        sources.load(tmp_path / "nothing")
    preset = tmp_path / "preset"
    model = zoo.from_preset("toy_birds_pfe")
    zoo.save_preset(model, preset)
    with pytest.raises(InputError, match="knows no data; name a folder of images with --photos"):
        sources.load(preset, data_dir=tmp_path)
    run = RunFolder.open(tmp_path / "run", {}, data={"loader": "cub", "root": str(tmp_path)})
    run.save_model(model)
    with pytest.raises(InputError, match="name its folder with --data-dir"):
        sources.load(run.path)
    with pytest.raises(InputError, match="holds no image"):
        sources.load(folder=preset)


def test_a_model_that_names_no_data_is_shown_over_the_packaged_photos(tmp_path, monkeypatch):
    zoo.save_preset(zoo.from_preset("toy_birds_pfe"), tmp_path / "mine")
    few = zoo.data.packaged_photos()[:5]
    monkeypatch.setattr(sources, "packaged_photos", lambda: few)
    gallery = sources.load(tmp_path / "mine", cache=tmp_path / "cache")
    assert gallery.image_paths == few
    assert len(gallery.credits) == len(few)


def test_the_command_listens_here_alone_unless_told(run_folder, tmp_path, monkeypatch):
    """And nothing is written into the working folder: it was `data/demo`, wherever one stood."""
    launched = []
    monkeypatch.setattr(page.Page, "launch", lambda *where: launched.append(where))
    monkeypatch.setenv("GRADIO_TEMP_DIR", "of this test")
    monkeypatch.setenv("HALO_CACHE", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    main([str(run_folder)])
    assert os.environ["GRADIO_TEMP_DIR"] == "of this test"  # Gradio had its own meanwhile
    assert list(Path().iterdir()) == []
    assert any((tmp_path / "cache" / "demo").iterdir())
    gallery, asked = launched[0][0].service.gallery, []
    monkeypatch.setattr(sources, "load", lambda *flags: asked.append(flags) or gallery)
    main([str(run_folder), "--cache", "own", "--host", "0.0.0.0", "--port", "7999"])
    assert "own" in map(str, asked[0])
    assert [where[:2] for _, *where in launched] == [["127.0.0.1", None], ["0.0.0.0", 7999]]
    assert gallery.name == "birds test"


def test_gradio_is_imported_where_its_private_folder_is_set(monkeypatch):
    """It reads then where its temporary files go, and makes a folder there."""
    folders = []

    def require(name, extra):
        folders.append((name, os.environ.get("GRADIO_TEMP_DIR")))
        raise InputError("enough")

    monkeypatch.delenv("GRADIO_TEMP_DIR", raising=False)
    monkeypatch.setattr("demo.__main__.require", require)
    with pytest.raises(InputError, match="enough"):
        main(["--port", "0"])
    ((name, folder),) = folders
    assert name == "gradio"
    assert Path(folder).name.startswith("halo-demo-")
    assert not Path(folder).exists()


def test_the_handler_of_sigterm_ends_with_the_demo():
    before = signal.getsignal(signal.SIGTERM)

    def upload(folder):
        with contextlib.suppress(FileNotFoundError):
            for number in range(10_000):
                (folder / str(number)).touch()

    with _private_folder():
        folder = Path(os.environ["GRADIO_TEMP_DIR"])
        uploading = threading.Thread(target=upload, args=(folder,))
        uploading.start()
        with pytest.raises(SystemExit):
            signal.raise_signal(signal.SIGTERM)
    uploading.join()
    assert not folder.exists()
    assert signal.getsignal(signal.SIGTERM) is before
