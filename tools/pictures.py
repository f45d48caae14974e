"""The plots of docs, light and dark: of the packaged preset, of kept results and of small runs.

    python -m tools.pictures                   # what follows from the preset and from docs/runs
    python -m tools.pictures --runs RUNS       # and what needs trained models, in this folder

The models, minutes of one core each:

    python recipes/pcme_2d.py --out RUNS/pcme_2d
    python recipes/dive_coco.py --features resnet152 --out RUNS/dive_pictures
    python recipes/gaussian_vsepp_coco.py --out RUNS/gaussian_vsepp_coco

First come `tools.first_screen`, for the README, and by hand the demo's screenshots.
"""

import argparse
import importlib
import json
import sys
from pathlib import Path

import numpy as np

import zoo
from tools import dark
from zoo import cli, data, encoders, evaluation, plots
from zoo.plots.ellipses import items_of

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
OF_KEPT_RUNS = {
    "pcmepp_recall_by_uncertainty": "pcmepp-seed-0",
    "pcmepp_scenes_recall_by_uncertainty": "pcmepp_scenes_6000-seed-0",
}
CLASSES, ITEMS = 5, 4  # of the plane
PICTURES = 3  # rows of a sheet


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, help="the folder of the runs above")
    options = parser.parse_args(argv)
    for name, figure in [*of_kept_runs(), *of_the_preset(), *of_runs(options.runs)]:
        print(*dark.save_both(figure, IMAGES / f"{name}.png"))


def of_kept_runs():
    for name, run in OF_KEPT_RUNS.items():
        found = json.loads((ROOT / "docs" / "runs" / run / "metrics.json").read_text())
        bins = {side: _arrays(found["uncertainty"][side]) for side in ("i2t", "t2i")}
        yield name, plots.recall_by_uncertainty_plot(**bins)


def of_the_preset():
    model = zoo.from_preset("toy_birds_pfe")
    split = data.open(zoo.list_presets()["toy_birds_pfe"]["data"], "test")
    encoded = evaluation.encode(model, split.records, split.source)
    found = evaluation.evaluate(model, encoded, ("own",))["uncertainty"]
    bins = {side: found[side]["recall_by_uncertainty"] for side in ("i2t", "t2i")}
    yield "recall_by_uncertainty", plots.recall_by_uncertainty_plot(**bins)
    fits = plots.uncertainty_against_matches(
        encoded.caption_uncertainty, split.true_matches, encoded.measure
    )
    yield "ambiguity", fits


def of_runs(folder):
    """The pictures of the models that are in a folder; those of others stay as they are."""
    for run, (name, draw) in OF_RUNS.items():
        if folder is not None and (folder / run).is_dir():
            yield name, draw(folder / run)


def plane(run):
    """Ellipses of some classes of a model of two dimensions."""
    model, split = evaluation.open_run(run)
    encoded = evaluation.encode(model, split.records, split.source)
    labels = np.unique(split.records.image_labels)[:CLASSES]
    return plots.confidence_ellipses(*items_of(encoded, labels, ITEMS))


def attention(run):
    """Where the elements of a model of sets look."""
    model, split = evaluation.open_run(run)
    sets = evaluation.encode_sets(model, split.records, split.source)
    size = encoders.map_size(model.image_encoder)
    return plots.attention_sheet_of(sets, split.records, split.picture, size, rows=PICTURES)


def crops(run):
    """Crops and captions A and C of some toy scenes, with their uncertainties."""
    sys.path.append(str(ROOT / "recipes"))
    crop_ambiguity = importlib.import_module("studies.crop_ambiguity")
    flags = ["--model", str(run), "--crops", "in_place"]
    settings = cli.parse(crop_ambiguity.Settings, flags)
    records = crop_ambiguity.load(settings)
    model = zoo.from_preset(run)
    side = crop_ambiguity.side_of(model, run)
    widest = settings.thresholds[-1]
    triplets = crop_ambiguity.triplets_of(records, widest, settings.num_regions)
    chosen = np.linspace(0, len(triplets) - 1, PICTURES).round().astype(int)
    triplets = [triplets[i] for i in chosen]
    way = crop_ambiguity.CROPS[settings.crops]
    measured = crop_ambiguity.measure(model, records, triplets, side, way)
    return crop_ambiguity.sheet(records, triplets, measured)


def _arrays(quality):
    bins = quality["recall_by_uncertainty"]
    return {name: np.asarray(values) for name, values in bins.items()}


OF_RUNS = {
    "pcme_2d": ("pcme_2d", plane),
    "dive_pictures": ("dive_attention", attention),
    "gaussian_vsepp_coco": ("crops", crops),
}

if __name__ == "__main__":
    main()
