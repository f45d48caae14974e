"""The controlled ambiguity experiment on Visual Genome, or on Toy Scenes when no data are given.

    python recipes/gaussian_vsepp_coco.py                          # the model to test
    python -m studies.crop_ambiguity                               # Toy Scenes
    python -m studies.crop_ambiguity --model runs/vse_coco --out runs/crops_of_points
    python -m studies.crop_ambiguity --data-dir visual_genome --model runs/gaussian_vsepp_coco

Pishdad et al., "Uncertainty-based Cross-modal Retrieval with Probabilistic Representations", 2022,
section 4.6. Of every picture, crop A is the largest of its ten largest regions below an area, B the
one of the others that overlaps it least, C the box around both; caption C is "A and B". Results:

- `selection`, table 4: given crop A or C, which of captions A and C is the more similar, and given
  caption A or C, which of the crops; the share of the triplets where it is the right one. Of any
  model of pictures, points too.
- `mean_uncertainty`, figure 2: of crops and captions A and C. Of Gaussians.

`--data-dir` holds `region_descriptions.json` and the photos in `VG_100K` and `VG_100K_2`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table

import zoo
from halo_search.errors import InputError
from halo_search.files import cache_folder
from studies import crop_triplets
from studies.crop_figures import QUERIES, crop_figures, crop_sheet
from zoo import cli, plots, training
from zoo.cli import Share, Size, setting
from zoo.data import toy_scenes, visual_genome
from zoo.images.pictures import read
from zoo.models.run_folder import RunFolder


@dataclass(frozen=True, kw_only=True)
class Settings(training.RunSettings):
    """The model to test, and the crops."""

    out: Path = setting(Path("runs/crop_ambiguity"), "run folder to write", identity=False)
    model: Path = setting(Path("runs/gaussian_vsepp_coco"), "run folder of a model of pictures")
    held_out: Literal["test", "val"] = setting("test", "Toy Scenes' split")
    skip_bad: bool = setting(True, "leave out what is bad in the data, and count it")
    thresholds: tuple[Share, ...] = setting(
        (0.1, 0.2, 0.3, 0.4, 0.5),
        "largest areas of a region, as shares",
        source="Pishdad et al., figure 2",
        toy=(0.08, 0.12, 0.16, 0.3),
    )
    num_regions: Size = setting(
        10, "largest regions that are looked at", source="Pishdad et al., section 4.6"
    )
    most_images: Size | None = setting(
        2000, "pictures, drawn at random", source="Pishdad et al., section 4.6", smoke=20
    )


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    run = RunFolder.open(settings.out, settings)
    if run.finished:
        print(f"{run.path} is finished")
        show(run.metrics)
        return run.metrics
    model = zoo.from_preset(settings.model)
    size = side_of(model, settings.model)
    records = load(settings)
    table, last = [], None
    for threshold in settings.thresholds:
        triplets = triplets_of(records, threshold, settings.num_regions)
        table.append({"largest_area": threshold, "triplets": len(triplets)})
        if triplets:
            measured = measure(model, records, triplets, size)
            table[-1] |= summary(measured)
            last = (triplets, measured)
    if last is None:
        raise InputError(f"{records.name}: no picture has two regions below these areas")
    results = {"crop_triplets": table, "images": records.num_images}
    draw(run, table, records, *last)
    run.finish(results)
    show(results)
    print(f"Everything is in {run.path}")
    return results


def load(settings):
    root = settings.data_dir
    if root is None:
        scenes = toy_scenes.generate(cache_folder("toy_scenes"))
        out = cache_folder(f"toy_phrases_{settings.held_out}")
        root = crop_triplets.describe_birds(scenes, out, settings.held_out)
    records = visual_genome.load(
        root / "region_descriptions.json", root, skip_bad=settings.skip_bad
    ).records
    if settings.most_images and settings.most_images < records.num_images:
        order = np.random.default_rng(settings.seed).permutation(records.num_images)
        records = records.select(np.sort(order[: settings.most_images]))
    return records


def side_of(model, path):
    """The height and width of the pictures that the model takes."""
    shape = model.image_encoder.input_shape
    if len(shape) != 4:
        raise InputError(f"{path}: expected a model of pictures, found one of {shape[1:]} features")
    return shape[1]


def triplets_of(records, threshold, num_regions):
    sizes = np.empty((records.num_images, 2))
    for index, path in enumerate(records.image_paths):
        with Image.open(path) as picture:  # reads the header alone
            sizes[index] = picture.size
    return crop_triplets.crop_triplets(records, sizes, threshold, num_regions)


def measure(model, records, triplets, size, triplets_at_once=64):
    """What a model says of crops and captions A and C of each triplet."""
    measured = {"similarity": [], "crops": [], "captions": []}
    for start in range(0, len(triplets), triplets_at_once):
        some, pictures = triplets[start : start + triplets_at_once], []
        for triplet in some:
            picture = read(records.image_paths[triplet.image]).numpy()
            pictures += [crop_triplets.crop(picture, triplet.boxes[i], size) for i in (0, 2)]
        texts = [text for triplet in some for text in captions_of(records, triplet)]
        crops = model.image_encoder.predict_on_batch(np.stack(pictures).astype("float32"))
        captions = model.caption_encoder.predict(model.tokenize(texts), verbose=0)
        every = np.asarray(model.similarity(crops, captions))
        diagonal = np.arange(len(some))
        measured["similarity"].append(
            every.reshape(len(some), 2, len(some), 2)[diagonal, :, diagonal, :]
        )
        if "log_variance" in crops:
            for side, embedding in (("crops", crops), ("captions", captions)):
                measured[side].append(np.asarray(model.uncertainty(embedding)).reshape(-1, 2))
    return {side: np.concatenate(values) for side, values in measured.items() if values}


def captions_of(records, triplet):
    first, second = (str(records.captions[i]) for i in (triplet.first, triplet.second))
    return first, crop_triplets.joined(first, second)


def summary(measured):
    """The shares and means of `measure`, as metrics.json has them; a tie is not right."""
    (aa, ac), (ca, cc) = np.moveaxis(measured["similarity"], 0, -1)
    right = {"crop_a": aa > ac, "crop_c": cc > ca, "caption_a": aa > ca, "caption_c": cc > ac}
    results = {"selection": {query: float(np.mean(hits)) for query, hits in right.items()}}
    if "crops" in measured:
        results["mean_uncertainty"] = {
            side: dict(zip("ac", measured[side].mean(axis=0).tolist(), strict=True))
            for side in ("crops", "captions")
        }
    return results


def draw(run, table, records, triplets, measured, rows=5):
    for name, figure in crop_figures(table).items():
        plots.save(figure, run.plots / f"{name}.png")
    if "crops" not in measured:
        return
    chosen = np.linspace(0, len(triplets) - 1, min(rows, len(triplets))).round().astype(int)
    shown = [triplets[i] for i in chosen]
    figure = crop_sheet(
        [read(records.image_paths[triplet.image]).numpy() for triplet in shown],
        [triplet.boxes for triplet in shown],
        [captions_of(records, triplet) for triplet in shown],
        measured["crops"][chosen],
        measured["captions"][chosen],
    )
    plots.save(figure, run.plots / "crops.png")


def show(results):
    table = Table(title="Binary selection accuracy by query, in %", title_justify="left")
    for title in ("largest area", "triplets", *QUERIES.values()):
        table.add_column(title, justify="right")
    for row in results["crop_triplets"]:
        shares = row.get("selection", {})
        cells = [f"{100 * shares[name]:.1f}" if shares else "–" for name in QUERIES]
        table.add_row(f"{100 * row['largest_area']:g} %", f"{row['triplets']:,}", *cells)
    Console().print(table)


if __name__ == "__main__":
    cli.run(main)
