"""Finished runs and presets with the data that they were evaluated on, and ensembles of them."""

import os
from collections.abc import Sequence
from typing import Any

from halo_search.confidence import Probes
from halo_search.errors import InputError
from zoo import metrics
from zoo.data import datasets
from zoo.data.records.sources import Split
from zoo.evaluation.retrieval import encode, measure_pairs
from zoo.models import DualEncoder
from zoo.models.points import POINTS_FILE
from zoo.models.run_folder import RunFolder
from zoo.presets import from_preset, list_presets
from zoo.presets.folders import card_of, preset_folder, whole_of


def open_run(
    name: str | os.PathLike,
    data_dir: str | os.PathLike | None = None,
    split: str = "test",
) -> tuple[DualEncoder, Split]:
    """The model of a run, or of a preset, and the split that it was evaluated on, or another of its
    data, which may have moved. Raises InputError if there is no such run, it has no model yet, or
    its data are absent."""
    data = data_of(name)
    if data_dir is not None:
        data = {**data, "root": str(data_dir)}
    if str(name) not in list_presets() and RunFolder(name).is_run:
        folder = RunFolder.existing(name)
        if not folder.model_path.is_file():
            raise InputError(
                f"{folder.path}: has no {folder.model_path.name} yet; finish the run first"
            )
    return from_preset(name), datasets.open(data, split)


def data_of(name: str | os.PathLike) -> dict[str, Any]:
    """The description of the data of a run or preset, for `zoo.data.open`. Raises InputError if
    there is no such run, or the card of a preset names no data."""
    card = card_of(name)
    if card is None:
        return RunFolder.existing(name).data
    if not isinstance(card.get("data"), dict):
        raise InputError(f"{name}: its card names no data")
    return card["data"]


def probes_of(name: str | os.PathLike) -> Probes | None:
    """The held-out pairs of a run, a preset or a folder that holds a model, if any; a `.keras` file
    has none. Raises InputError if their file is damaged."""
    folder = preset_folder(name)
    if folder is not None and (folder / POINTS_FILE).is_file():
        return Probes.load(RunFolder(whole_of(folder / POINTS_FILE)).probes_path).of_points()
    path = None if folder is None else RunFolder(folder).probes_path
    return Probes.load(path) if path is not None and path.is_file() else None


def ensemble(
    folders: Sequence[str | os.PathLike],
    split: Split,
    annotations_dir: str | os.PathLike | None = None,
    instances: Any = None,
) -> dict[str, Any]:
    """Evaluates the mean similarity of finished runs on a `zoo.data.Split`. Returns the results as
    `measure` does, under `"retrieval"` each run by its folder, and `"ensemble"`. Raises InputError
    if a folder holds no run with a model.

    Reference: DivE (Kim et al., CVPR 2023), section 4.3: two seeds.
    """
    parts, retrieval = [], {}
    for path in folders:
        model = from_preset(RunFolder.existing(path).path)
        encoded = encode(model, split.records, split.source)
        pairs = encoded.pairs(model.similarity).in_memory()
        retrieval[str(path)] = metrics.evaluate_retrieval(pairs, encoded.relevance)
        parts.append(pairs)
    mean = metrics.MeanSimilarity(parts)
    retrieval["ensemble"] = metrics.evaluate_retrieval(mean, encoded.relevance)
    return {
        "retrieval": retrieval,
        "chance": metrics.chance(encoded.relevance),
        "split": split.records.summary(),
        **measure_pairs(mean, split, annotations_dir, instances),
    }
