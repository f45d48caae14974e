"""A model's vectors of a whole data set as files, as another tool would have written them."""

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
    model: str | os.PathLike,
    folder: str | os.PathLike,
    data_dir: str | os.PathLike | None = None,
    pairs: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The splits of a model's own data, or of photos with captions that `pairs` describes, encoded
    into the files that the loader `vectors` reads; a description of them for `zoo.data.open`.

    Files of the same model and data are taken as they are. Raises InputError where the folder has
    those of another, or files of these names that this program did not write, or the model has no
    single vector for an item.
    """
    folder = Path(folder)
    names = {"images": "images.npy", "captions": "captions.npy", "pairs": "pairs.npy"}
    names |= {name: f"{name}.txt" for name in ("labels", "splits", "texts", "paths")}
    if pairs is None:
        moved = {} if data_dir is None else {"root": str(data_dir)}
        described = {**data_of(model), **moved}
    else:
        described = {"loader": "pairs", **pairs}
    facts = {"model": str(model), "data": described}
    if (folder / _DONE).exists():
        found = read_object(folder / _FACTS) if (folder / _FACTS).is_file() else facts
        if found != facts:
            raise InputError(
                f"{folder}: has vectors of {found.get('model')} over {found.get('data')}; expected "
                f"those of {facts['model']} over {described}. Choose another folder, or delete it"
            )
    else:
        Written(folder).claim(_FACTS, *names.values())
        opened = from_preset(model)
        if pairs is not None:  # shown as the model itself wants pictures
            tower = Tower(opened, "images")
            tower.expect("pictures")
            shown = dict(zip(("resize", "crop_fraction"), tower.resizing, strict=True))
            described = {"image_size": tower.image_size, **shown, **described}
        write_json(folder / _FACTS, facts)
        _write(opened, described, folder)
    there = {key: str(folder / name) for key, name in names.items() if (folder / name).exists()}
    return {"loader": "vectors", **there}


def toy() -> dict[str, Any]:
    """The vectors of Toy Birds by the packaged model, made when they are first asked for."""
    return write(PRESET, cache_folder(f"vectors_of_{PRESET}"))


def _write(model, description, folder):
    columns = {name: [] for name in ("images", "captions", "pairs", "labels", "texts", "paths")}
    splits, images, captions = [], 0, 0
    for split in data.datasets.SPLITS:
        opened = data.open(description, split)
        records = opened.records
        encoded = encode(model, records, opened.source)
        if "mean" not in encoded.images or "mean" not in encoded.captions:
            raise InputError(f"{description}: the model gives sets; expected one vector per item")
        columns["images"].append(np.asarray(encoded.images["mean"]))
        columns["captions"].append(np.asarray(encoded.captions["mean"]))
        own = np.arange(records.num_captions)
        columns["pairs"].append(np.stack([records.caption_image + images, own + captions], axis=1))
        if records.class_names is not None:
            columns["labels"] += [records.class_names[label] for label in records.image_labels]
        columns["texts"] += list(records.captions)
        columns["paths"] += list(records.image_paths)
        splits += [split] * records.num_images
        images, captions = images + records.num_images, captions + records.num_captions
    for name in ("images", "captions", "pairs"):
        with atomic(folder / f"{name}.npy") as temporary, open(temporary, "wb") as file:
            np.save(file, np.concatenate(columns[name]))
    for name in ("labels", "texts", "paths"):
        if columns[name]:
            write_text(folder / f"{name}.txt", _lines(columns[name]))
    write_text(folder / _DONE, _lines(splits))


def _lines(values):
    return "".join(" ".join(str(value).split()) + "\n" for value in values)
