"""What the runs of all recipes' tests share."""

import functools
import json
from pathlib import Path

import keras
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from zoo.data import coco, toy_birds, toy_scenes
from zoo.plots import style


@pytest.fixture(scope="session")
def drawn_birds(tmp_path_factory):
    """Sixteen species of four birds, of which four are not trained on."""
    root = tmp_path_factory.mktemp("drawn") / "birds"
    return toy_birds.generate(root, num_classes=16, images_per_class=4, image_size=32)


@pytest.fixture(scope="session")
def drawn_scenes(tmp_path_factory):
    """Fifty scenes in all three layouts, of which ten are tested."""
    root = tmp_path_factory.mktemp("drawn") / "scenes"
    return toy_scenes.generate(root, num_images=50, num_species=6, image_size=48, region_dim=16)


@pytest.fixture(scope="session")
def drawn_annotations(drawn_scenes, tmp_path_factory):
    """The files of ECCV Caption for the test scenes: CxC adds the next scene's first caption."""
    folder = tmp_path_factory.mktemp("annotations")
    layout = drawn_scenes / "coco"
    records = coco.load(
        layout / "annotations" / "dataset_coco.json", layout, split="test", verbose=False
    ).records
    np.save(folder / "coco_test_ids.npy", np.sort(records.caption_ids))
    captions = {int(image): [] for image in records.image_ids}
    for caption, image in zip(records.caption_ids, records.caption_image, strict=True):
        captions[int(records.image_ids[image])].append(int(caption))
    images = list(captions)
    more = {
        image: [*captions[image], captions[images[(i + 1) % len(images)]][0]]
        for i, image in enumerate(images)
    }
    for name, matches in (("original", captions), ("cxc", more), ("eccv", more)):
        inverse = {}
        for image, own in matches.items():
            for caption in own:
                inverse.setdefault(caption, []).append(image)
        for kind, table in (("image_to_caption", matches), ("caption_to_image", inverse)):
            (folder / f"{name}_{kind}.json").write_text(json.dumps(table))
    return folder


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """The vectors of three hundred noisy pairs of one space."""
    folder = tmp_path_factory.mktemp("vectors")
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(300, 8))
    for name in ("images", "captions"):
        noisy = 3 * truth + rng.normal(size=truth.shape)
        np.save(folder / f"{name}.npy", noisy.astype("float32"))
    return folder


@pytest.fixture(scope="module")
def small_sets(drawn_birds, drawn_scenes, tmp_path_factory):
    """Both in place of the embedded ones, and a cache of their own, which is given."""
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toy_birds, "generate", lambda *_, **__: drawn_birds)
        patch.setattr(toy_scenes, "generate", lambda *_, **__: drawn_scenes)
        patch.setenv("HALO_CACHE", str(cache))
        yield cache


@pytest.fixture(autouse=True)
def _no_collection(monkeypatch):
    """A table forgets the graphs of each run; to look for them takes longer than a small run."""
    forget = functools.partial(keras.backend.clear_session, free_memory=False)
    monkeypatch.setattr(keras.backend, "clear_session", forget)


@pytest.fixture(scope="session")
def _drawn():
    """Names of the figures that have been drawn."""
    return set()


@pytest.fixture(scope="module", autouse=True)
def _each_figure_once(_drawn):
    """To draw its half a dozen figures takes a third of a small run.

    So all runs together draw a figure of each name once; the others are empty pictures. What is in
    them is tested in tests/plots.
    """
    draw = Figure.savefig

    def savefig(figure, path, **options):
        if not isinstance(path, str | Path):  # a page holds it in itself
            return draw(figure, path, **options)
        name = Path(path).name.rpartition("-")[2]  # without what `atomic` puts before it
        if name not in _drawn:
            _drawn.add(name)
            return draw(figure, path, **options)
        return Image.new("L", (1, 1)).save(path, Path(name).suffix[1:])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", savefig)
        yield


@pytest.fixture(scope="module", autouse=True)
def coarse_figures():
    """A third of the resolution is enough to see that a figure can be drawn."""
    (fine,) = style.save.__defaults__
    style.save.__defaults__ = (50,)
    yield
    style.save.__defaults__ = (fine,)


@pytest.fixture
def fine_figures():
    """At the resolution that a user has."""
    coarse = style.save.__defaults__
    style.save.__defaults__ = (150,)
    yield
    style.save.__defaults__ = coarse


@pytest.fixture(scope="module", autouse=True)
def _quick(packaged_once, unoptimized_graphs):
    """Graphs are not optimized, and packaged presets are read once."""
