"""A hundred toy birds with a caption each, and exports that several tests read."""

import functools
import pathlib
import types

import pytest

import tiny_models
from export import export_model
from zoo.data import captions, cub, toy_birds


@pytest.fixture(scope="session")
def birds(tmp_path_factory):
    """Files and captions as requests, and the records that the training pipeline reads."""
    root = tmp_path_factory.mktemp("export") / "birds"
    toy_birds.generate(root, num_classes=16, images_per_class=12, image_size=48)
    records = cub.load(root, split="trainval", image_size=tiny_models.SIZE, verbose=False).records
    texts = list(records.captions[: tiny_models.COUNT])
    return types.SimpleNamespace(
        root=root,
        records=records,
        files=[
            path.read_bytes()
            for path in map(pathlib.Path, records.image_paths[: tiny_models.COUNT])
        ],
        paths=[str(path) for path in records.image_paths[: tiny_models.COUNT]],
        captions=texts,
        tokenizer=captions.word_tokenizer(texts, max_words=12),
    )


class Exported:
    """A model and its export, written when first asked for: `.folder` of the version, `.out`."""

    def __init__(self, model, out):
        self.model, self._out = model, out

    @functools.cached_property
    def folder(self):
        return export_model(self.model, self._out)

    @property
    def out(self):
        return self.folder.parent


@pytest.fixture(scope="session")
def pcme(birds, tmp_path_factory):
    model = tiny_models.tiny("pcme", birds.tokenizer)
    return Exported(model, tmp_path_factory.mktemp("export") / "pcme")


@pytest.fixture(scope="module", autouse=True)
def _quick(packaged_once, unoptimized_graphs):
    """Graphs are not optimized, and packaged presets are read once."""
