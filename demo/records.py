"""Galleries of data sets and of runs on stored vectors, which `zoo` reads."""

from pathlib import Path

import zoo
from demo.gallery import Gallery
from demo.stored_captions import labels_of
from halo_search.errors import InputError
from halo_search.retriever import Retriever
from zoo import evaluation
from zoo.data import batches, datasets, toy_birds
from zoo.data.text.prompts import spoken
from zoo.data.toy.birds import MANIFEST
from zoo.models.run_folder import RunFolder

_BIRDS = ("cub", "toy_birds", "few_classes")  # loaders of pictures that each show a bird


def is_run(run):
    """Whether this is the folder of a run, which names its data."""
    return RunFolder(run).is_run


def of_run(run, data_dir):
    """`(records, what a Gallery shows of them)` of the split that a run or a preset was evaluated
    on: a dict of `image_names`, `image_paths`, `captions`, `name`, and perhaps more."""
    records = _records(run, data_dir)
    paths = [Path(path) for path in records.image_paths]
    more = {}
    if evaluation.data_of(run)["loader"] in _BIRDS:
        more["noun"] = "bird"
    # Toy Birds are folder/images/class/file; a photo of one's own has fewer folders above it.
    if any(root.joinpath(MANIFEST).is_file() for root in list(paths[0].parents)[2:3]):
        more["larger"] = toy_birds.draw_again
    shown = {"image_names": _names(records, paths), "image_paths": paths}
    return records, {**shown, "captions": list(records.captions), "name": records.name, **more}


def of_vectors(run, folder, data_dir):
    """The gallery of a run on stored vectors: those of its test split."""
    if folder is not None:
        raise InputError(f"{run}: the model reads vectors, not pictures; leave out --photos")
    model, split = evaluation.open_run(run, data_dir)
    records, asker = split.records, Retriever(model, None, evaluation.probes_of(run))
    if records.caption_vectors is None:
        raise InputError("the model reads vectors of captions, and this gallery has words")
    images = batches.image_batches(records, split.source).map(lambda batch: batch["images"])
    captions = batches.caption_batches(records, None).map(lambda batch: batch["captions"])
    embeddings = {
        "images": asker.tower("images").of_arrays(images),
        "captions": asker.tower("captions").of_arrays(captions),
    }
    paths = list(records.image_paths)
    names = _names(records, [Path(path) for path in paths])
    labels = labels_of(records.captions, records.caption_ids)
    return Gallery(records.name, asker, names, paths, labels, embeddings, records)


def _names(records, paths):
    """What a person would call each image: its class, or the name of its file."""
    if records.class_names is None:
        return [path.stem.replace("_", " ") for path in paths]
    return [spoken(records.class_names[label]).capitalize() for label in records.image_labels]


def _records(run, data_dir):
    """The split that a run or a preset was evaluated on."""
    if str(run) not in zoo.list_presets() and not RunFolder(run).is_run:
        raise InputError(f"{run}: knows no data; name a folder of images with --photos")
    data = {**evaluation.data_of(run), "skip_bad": True}
    if data_dir is not None:
        data["root"] = str(data_dir)
    try:
        return datasets.open(data, "test").records
    except InputError as error:
        raise InputError(
            f"{error}; name its folder with --data-dir, or any images with --photos"
        ) from error
