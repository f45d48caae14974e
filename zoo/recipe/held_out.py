"""A finished run's model, with the held-out split that it was evaluated on."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import zoo
from zoo.errors import InputError
from zoo.files.run_folder import RunFolder
from zoo.recipe.settings import RetrievalSettings
from zoo.recipe.splits import (
    coco_pictures,
    cub_pictures,
    few_classes,
    flickr30k_pictures,
    region_features,
    table_of_pairs,
)

_LAYOUTS = (  # what lies in a data folder of each layout
    ("classes.txt", cub_pictures),
    ("dataset_coco.json", coco_pictures),
    ("annotations/dataset_coco.json", coco_pictures),
    ("dataset_flickr30k.json", flickr30k_pictures),
    ("train_ims.npy", region_features),
    ("pairs.csv", table_of_pairs),
    ("pairs.tsv", table_of_pairs),
    ("pairs.jsonl", table_of_pairs),
)


def held_out_of(name, data_dir=None):
    """The model and the held-out split of a run, or of a preset, whose data are Toy Birds.

    Args:
        name: a run folder, or a name out of `zoo.list_presets()`.
        data_dir: where the run's data set is now, if it has moved.

    Returns:
        `(DualEncoder, Split)`.

    Raises:
        InputError: if there is no such run, it has no model yet, or its data are not there.
    """
    if name in zoo.list_presets():
        model = zoo.from_preset(name)
        settings = {"image_size": _image_size(model)}
        return model, cub_pictures(complete(settings, data_dir)).held_out
    folder = RunFolder.existing(name)
    if not folder.model_path.is_file():
        raise InputError(
            f"{folder.path}: has no {folder.model_path.name} yet; finish the run first"
        )
    settings = complete(folder.settings, data_dir)
    load = layout_of(settings, folder)
    return zoo.from_preset(folder.path), load(settings).held_out


def complete(settings, data_dir=None):
    """A run's settings with defaults for those it was started without, and paths as paths."""
    defaults = {f.name: f.default for f in dataclasses.fields(RetrievalSettings)}
    values = {**defaults, **settings}
    if data_dir is not None:
        values["data_dir"] = data_dir
    for key in ("data_dir", "captions"):
        if values.get(key) is not None:
            values[key] = Path(values[key]).expanduser()
    return SimpleNamespace(**values)


def layout_of(settings, folder):
    """The function of `zoo.recipe` that loads a run's data.

    Raises:
        InputError: if the data folder is of no layout that is known.
    """
    if getattr(settings, "features", None) == "regions":
        return region_features
    if hasattr(settings, "num_classes"):
        return few_classes
    root = settings.data_dir
    if root is None:
        return _toy_layout(folder)
    found = next((load for file, load in _LAYOUTS if (root / file).exists()), None)
    if found is None:
        known = ", ".join(dict.fromkeys(file for file, _ in _LAYOUTS))
        raise InputError(
            f"{root}: expected the data of {folder.path}, one of {known}; say where they are with "
            "--data-dir"
        )
    if found is cub_pictures and getattr(settings, "captions", None):
        return lambda settings: cub_pictures(settings, captions=settings.captions)
    return found


def _toy_layout(folder):
    """Settings or results name the drawn data; a run without them is known by its recipe."""
    if folder.settings.get("toy") == "scenes":
        return coco_pictures
    split = (folder.metrics or {}).get("split", "")
    name = split or folder.config.get("command", "")
    if "flickr30k" in name.lower():
        return flickr30k_pictures
    if "toy_birds" in name or "cub" in name or "pcme" in name:
        return cub_pictures
    return coco_pictures


def _image_size(model):
    shape = model.image_encoder.input_shape
    if len(shape) != 4 or shape[1] is None:
        raise InputError(f"{model.name}: does not read pictures of one size")
    return shape[1]
