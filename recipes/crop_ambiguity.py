"""The controlled ambiguity experiment on Visual Genome, or on Toy Scenes when no data are given.

    python recipes/gaussian_vsepp_coco.py                          # the model to test
    python recipes/crop_ambiguity.py                               # Toy Scenes
    python recipes/crop_ambiguity.py --data-dir visual_genome --model runs/gaussian_vsepp_coco

Pishdad et al., "Uncertainty-based Cross-Modal Retrieval with Probabilistic Representations", 2022.
Of every picture, crop A is the largest of its ten largest regions below an area, B the one of the
others that overlaps it least, C the box around both; caption C is "A and B". Crop C should be more
uncertain than A, and caption C less uncertain than A: the share of pictures where that is so is
the selection accuracy. `--data-dir` holds `region_descriptions.json` and the photos in `VG_100K`
and `VG_100K_2`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table

import zoo
from zoo import cli, embeddings, report, training
from zoo.cli import setting
from zoo.data import crop_triplets, toy_scenes, visual_genome
from zoo.data.images import read
from zoo.errors import InputError
from zoo.files import RunFolder, cache_folder

CROPS = {"stretched": crop_triplets.crop, "in_place": crop_triplets.in_place}


@dataclass(frozen=True, kw_only=True)
class Settings(training.RunSettings):
    """The model to test, and the crops."""

    out: Path = setting(Path("runs/crop_ambiguity"), "run folder to write", identity=False)
    model: Path = setting(
        Path("runs/gaussian_vsepp_coco"), "run folder of a Gaussian model of pictures"
    )
    held_out: Literal["test", "val"] = setting("test", "Toy Scenes' split")
    skip_bad: bool = setting(True, "leave out what is bad in the data, and count it")
    thresholds: tuple[float, ...] = setting(
        (0.1, 0.2, 0.3, 0.5), "largest areas of a region, as shares", toy=(0.08, 0.12, 0.16, 0.3)
    )
    crops: Literal["stretched", "in_place"] = setting(
        "stretched", "cut out, as in the paper; or left in place, the rest of the picture hidden"
    )
    num_regions: int = setting(
        10, "largest regions that are looked at", source="Pishdad et al., section 4.6"
    )
    most_images: int | None = setting(None, "look at the first so many", smoke=20)


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
    table, examples = [], None
    for threshold in settings.thresholds:
        triplets = triplets_of(records, threshold, settings.num_regions)
        table.append({"largest_area": threshold, "triplets": len(triplets)})
        if triplets:
            uncertainties = uncertainties_of(model, records, triplets, size, CROPS[settings.crops])
            table[-1] |= accuracies(uncertainties)
            examples = (triplets, uncertainties)
    if examples is None:
        raise InputError(f"{records.name}: no picture has two regions below these areas")
    results = {"selection_accuracy": table, "images": records.num_images}
    draw(run, table, records, *examples)
    run.finish(results)
    show(results)
    print(f"Everything is in {run.path}")
    return results


def load(settings):
    root = settings.data_dir
    if root is None:
        scenes = toy_scenes.generate(cache_folder("toy_scenes"))
        out = cache_folder(f"toy_phrases_{settings.held_out}")
        root = toy_scenes.describe_birds(scenes, out, settings.held_out)
    records = visual_genome.load(
        root / "region_descriptions.json", root, skip_bad=settings.skip_bad
    ).records
    if settings.most_images:
        records = records.select(np.arange(min(settings.most_images, records.num_images)))
    return records


def side_of(model, path):
    """The height and width of the pictures that the model takes."""
    shape = model.image_encoder.input_shape
    if len(shape) != 4 or "log_variance" not in model.image_encoder.output:
        raise InputError(f"{path}: expected a Gaussian model of pictures")
    return shape[1]


def triplets_of(records, threshold, num_regions):
    sizes = np.empty((records.num_images, 2))
    for index, path in enumerate(records.image_paths):
        with Image.open(path) as picture:  # reads the header alone
            sizes[index] = picture.size
    return crop_triplets.crop_triplets(records, sizes, threshold, num_regions)


def uncertainties_of(model, records, triplets, size, crop, pictures_at_once=64):
    """Uncertainties of crops and captions A and C: `{"images", "captions"}`, each `(n, 2)`."""
    of_crops = []
    for start in range(0, len(triplets), pictures_at_once):
        crops = []
        for triplet in triplets[start : start + pictures_at_once]:
            picture = read(records.image_paths[triplet.image]).numpy()
            crops += [crop(picture, triplet.boxes[i], size) for i in (0, 2)]
        of_crops.append(model.image_encoder.predict_on_batch(np.stack(crops).astype("float32")))
    captions = [text for triplet in triplets for text in captions_of(records, triplet)]
    of_captions = model.caption_encoder.predict(model.tokenize(captions), verbose=0)
    return {
        side: np.asarray(model.uncertainty(embedding)).reshape(-1, 2)
        for side, embedding in (
            ("images", embeddings.concatenate(of_crops)),
            ("captions", of_captions),
        )
    }


def captions_of(records, triplet):
    first, second = (str(records.captions[i]) for i in (triplet.first, triplet.second))
    return first, crop_triplets.joined(first, second)


def accuracies(uncertainties):
    """Shares of the triplets in which the more ambiguous one is more uncertain; a tie is not."""
    images, captions = uncertainties["images"], uncertainties["captions"]
    return {
        "images": float(np.mean(images[:, 1] > images[:, 0])),
        "captions": float(np.mean(captions[:, 1] < captions[:, 0])),
    }


def draw(run, table, records, triplets, uncertainties, rows=5):
    columns = {key: [row.get(key, np.nan) for row in table] for key in ("images", "captions")}
    figure = report.selection_accuracy_plot(
        [row["largest_area"] for row in table],
        **columns,
        counts=[row["triplets"] for row in table],
    )
    report.save(figure, run.plots / "selection_accuracy.png")
    chosen = np.linspace(0, len(triplets) - 1, min(rows, len(triplets))).round().astype(int)
    pictures = [read(records.image_paths[triplets[i].image]).numpy() for i in chosen]
    figure = report.crop_sheet(
        pictures,
        [triplets[i].boxes for i in chosen],
        [captions_of(records, triplets[i]) for i in chosen],
        uncertainties["images"][chosen],
        uncertainties["captions"][chosen],
    )
    report.save(figure, run.plots / "crops.png")


def show(results):
    table = Table(title="Selection accuracy, in %", title_justify="left")
    for title in ("largest area", "triplets", "crop C > A", "caption C < A"):
        table.add_column(title, justify="right")
    for row in results["selection_accuracy"]:
        shares = [f"{100 * row[s]:.1f}" if s in row else "–" for s in ("images", "captions")]
        table.add_row(f"{100 * row['largest_area']:g} %", f"{row['triplets']:,}", *shares)
    Console().print(table)


if __name__ == "__main__":
    cli.run(main)
