"""A model's vectors of a complete data set as files, as another tool would have written them."""

import os
from pathlib import Path
from typing import Any

from halo_search.errors import InputError
from halo_search.files.atomic import atomic, write_text
from halo_search.files.environment import cache_folder
from halo_search.files.json_files import read_object, write_json
from halo_search.files.written import Written
from zoo import data
from zoo.evaluation.retrieval import encode
from zoo.evaluation.runs import data_of
from zoo.models import Tower
from zoo.presets import from_preset

import numpy as np

PRESET = "toy_birds_pcme"
_DONE = "splits.txt"  # written last
_FACTS = "vectors.json"


def write(
    model: str | os.PathLike, folder: str | os.PathLike, photos: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Encodes all splits by a model, writes the vectors to files that the loader `vectors` reads,
    and returns the description of these files for `zoo.data.open`.

    Existing files of the same model and data are used again. Raises InputError if the folder has
    files of another model or data, or files of these names that this program did not write, or if
    the model has no single vector for an item.

    Args:
        model: whatever `zoo.from_preset` opens.
        folder: where to write.
        photos: options of the loader `pairs` for photos with captions; None: the model's own data.
    """
    folder = Path(folder)
    files = {"images": "images.npy", "captions": "captions.npy", "pairs": "pairs.npy"}
    files |= {name: f"{name}.txt" for name in ("labels", "splits", "texts", "paths")}
    description = data_of(model) if photos is None else {"loader": "pairs", **photos}
    facts = {"model": str(model), "data": description}
    if (folder / _DONE).exists():
        _check_facts(folder, facts)
    else:
        Written(folder).claim(_FACTS, *files.values())
        opened = from_preset(model)
        if photos is not None:
            description = {**_resizing_of(opened), **description}
        write_json(folder / _FACTS, facts)
        _write_vectors(opened, description, folder)
    existing = {
        name: str(folder / file) for name, file in files.items() if (folder / file).exists()
    }
    return {"loader": "vectors", **existing}


def toy() -> dict[str, Any]:
    """The vectors of Toy Birds by the packaged model, made when they are first asked for."""
    return write(PRESET, cache_folder(f"vectors_of_{PRESET}"))


def _check_facts(folder, expected):
    """Raises InputError if the vectors in the folder are of another model or other data."""
    if not (folder / _FACTS).is_file():
        return
    facts = read_object(folder / _FACTS)
    if facts != expected:
        raise InputError(
            f"{folder}: has vectors of {facts.get('model')} over {facts.get('data')}; expected "
            f"those of {expected['model']} over {expected['data']}. Choose another folder, or "
            "delete it"
        )


def _resizing_of(model):
    """How a model wants its pictures: side, and how a photo becomes a square."""
    tower = Tower(model, "images")
    tower.expect("pictures")
    resize, crop_fraction = tower.resizing
    return {"image_size": tower.image_size, "resize": resize, "crop_fraction": crop_fraction}


def _write_vectors(model, description, folder):
    """Writes the rows of all splits one after the other: `images.npy` (N, dim), `captions.npy`
    (M, dim), `pairs.npy` (M, 2) rows of both, and lists with a line per row."""
    columns = {name: [] for name in ("images", "captions", "pairs", "labels", "texts", "paths")}
    splits, num_images, num_captions = [], 0, 0
    for split in data.datasets.SPLITS:
        opened = data.open(description, split)
        records = opened.records
        encoded = encode(model, records, opened.source)
        if "mean" not in encoded.images or "mean" not in encoded.captions:
            raise InputError(f"{description}: the model returns sets; expected one vector per item")
        columns["images"].append(np.asarray(encoded.images["mean"]))
        columns["captions"].append(np.asarray(encoded.captions["mean"]))
        caption_rows = num_captions + np.arange(records.num_captions)
        image_rows = num_images + records.caption_image
        columns["pairs"].append(np.stack([image_rows, caption_rows], axis=1))
        if records.class_names is not None:
            columns["labels"] += [records.class_names[label] for label in records.image_labels]
        columns["texts"] += list(records.captions)
        columns["paths"] += list(records.image_paths)
        splits += [split] * records.num_images
        num_images += records.num_images
        num_captions += records.num_captions
    for name in ("images", "captions", "pairs"):
        with atomic(folder / f"{name}.npy") as temporary, open(temporary, "wb") as file:
            np.save(file, np.concatenate(columns[name]))
    for name in ("labels", "texts", "paths"):
        if columns[name]:
            write_text(folder / f"{name}.txt", _lines(columns[name]))
    write_text(folder / _DONE, _lines(splits))


def _lines(values):
    """A line per value; white space in a value, line breaks too, becomes one space."""
    return "".join(" ".join(str(value).split()) + "\n" for value in values)
