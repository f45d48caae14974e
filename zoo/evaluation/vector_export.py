"""A model's vectors of a whole data set as files, as another tool would have written them."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from zoo import data
from zoo.evaluation.retrieval import encode
from zoo.evaluation.runs import data_of
from zoo.files.atomic import atomic, write_text
from zoo.files.cache import cache_folder
from zoo.models.presets import from_preset

PRESET = "toy_birds_pcme"
_DONE = "splits.txt"  # written last


def write_vectors(
    run: str | os.PathLike, folder: str | os.PathLike, data_dir: str | os.PathLike | None = None
) -> dict[str, Any]:
    """Encodes every split of a run or preset into files that the loader `vectors` reads.

    Args:
        run: a run folder, or a name out of `zoo.list_presets()`.
        folder: where `images.npy`, `captions.npy` (the means), `pairs.npy`, `labels.txt` of data
            with classes, `texts.txt`, `paths.txt` and `splits.txt` go.
        data_dir: where the run's data set is now, if it has moved.

    Returns:
        A description for `zoo.data.open`.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / _DONE).exists():
        moved = {} if data_dir is None else {"root": str(data_dir)}
        _write(from_preset(run), {**data_of(run), **moved}, folder)
    names = {"images": "images.npy", "captions": "captions.npy", "pairs": "pairs.npy"}
    names |= {name: f"{name}.txt" for name in ("labels", "splits", "texts", "paths")}
    there = {key: str(folder / name) for key, name in names.items() if (folder / name).exists()}
    return {"loader": "vectors", **there}


def toy_vectors() -> dict[str, Any]:
    """The vectors of Toy Birds by the packaged model, made when they are first asked for.

    Returns:
        A description for `zoo.data.open`.
    """
    return write_vectors(PRESET, cache_folder(f"vectors_of_{PRESET}"))


def _write(model, description, folder):
    columns = {name: [] for name in ("images", "captions", "pairs", "labels", "texts", "paths")}
    splits, images, captions = [], 0, 0
    for split in data.datasets.SPLITS:
        opened = data.open(description, split)
        records = opened.records
        encoded = encode(model, records, opened.source)
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
