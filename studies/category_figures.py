"""PCME's figures C.1 and C.2: the object categories of COCO's images, and plausible matches.

    python -m studies.category_figures --figure C.1 --data-dir coco
    python -m studies.category_figures --figure C.2 --data-dir coco
    python -m studies.category_figures --figure C.2          # Toy Scenes, seconds

Chun et al., "Probabilistic Embeddings for Cross-Modal Retrieval", CVPR 2021, appendix C.1. Needs no
model. `--data-dir` holds Karpathy's `dataset_coco.json`, the images of val2014 and
`annotations/instances_val2014.json`.

- C.1: how many images of val2014 have 1, 2, … 10 distinct categories; images with more are left
  out, as in the paper, and counted in figure.json.
- C.2: an image of the test split beside an image whose categories differ from its own in ζ = 0, 1
  and 2 places, each with its categories and captions. The paper does not say how it chose them:
  `--image` is an id, by default drawn by `--seed` among the images with two categories at least
  for which all three ζ have an example.
"""

import json
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from halo_search.errors import InputError
from halo_search.files import write_text
from halo_search.files.environment import cache_folder
from halo_search.files.json_files import read_json
from halo_search.files.written import Written
from zoo import cli, data, metrics, plots
from zoo.cli import setting
from zoo.data import toy_scenes
from zoo.plots.style import new_figure, show_image, styled

MOST_CATEGORIES = 10  # of an image of figure C.1
ZETAS = (0, 1, 2)
LEAST_CATEGORIES = 2  # of an image that --seed draws


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Which figure, and of which images."""

    figure: Literal["C.1", "C.2"]
    data_dir: Path | None = setting(None, "folder of COCO; without it, Toy Scenes")
    out: Path | None = setting(None, "folder to write; default: runs/category_figures/FIGURE")
    image: int | None = setting(None, "id of the first image of figure C.2; default: drawn")
    smoke: bool = setting(False, "smoke test with some images only")
    seed: int = setting(0, "seed of the images that are drawn")

    def __post_init__(self):
        if self.out is None:
            object.__setattr__(self, "out", Path("runs/category_figures") / self.figure)


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    root = settings.data_dir or toy_coco(settings.smoke)
    Written(settings.out).claim("figure.png", "figure.json")
    figure, numbers = FIGURES[settings.figure](settings, root)
    settings.out.mkdir(parents=True, exist_ok=True)
    plots.save(figure, settings.out / "figure.png")
    write_text(settings.out / "figure.json", json.dumps(numbers, indent=2) + "\n")
    print(f"figure {settings.figure} of {root}: {settings.out / 'figure.png'}")
    return numbers


def toy_coco(smoke):
    """The folder of Toy Scenes in COCO's layout."""
    few = {"num_images": 60} if smoke else {}
    name = "_".join(["toy_scenes", *map(str, few.values())])
    return toy_scenes.generate(cache_folder(name), **few) / "coco"


def instances_of(root):
    return root / "annotations" / "instances_val2014.json"


def categories_per_image(settings, root):
    """Figure C.1."""
    path = instances_of(root)
    ids = [image["id"] for image in read_json(path)["images"]]
    sizes = metrics.read_instance_labels(path, ids).sum(axis=1)
    counts = np.bincount(sizes, minlength=MOST_CATEGORIES + 1)
    numbers = {
        "images": len(ids),
        "without_categories": int(counts[0]),
        "images_by_categories": counts[1 : MOST_CATEGORIES + 1].tolist(),
        "left_out": int(counts[MOST_CATEGORIES + 1 :].sum()),
        "percent_with_more_than_two": 100 * float(np.mean(sizes > 2)),
    }
    return draw_histogram(numbers["images_by_categories"]), numbers


@styled
def draw_histogram(counts):
    """Bars over 1, 2, … categories per image."""
    figure = new_figure(6.0, 3.4)
    axis = figure.subplots()
    numbers = np.arange(1, len(counts) + 1)
    axis.bar(numbers, counts)
    axis.set(xlabel="distinct categories per image", ylabel="images", xticks=numbers)
    return figure


def plausible_examples(settings, root):
    """Figure C.2."""
    split = data.open({"loader": "coco", "root": str(root)}, "test")
    records = split.records
    names = {item["id"]: item["name"] for item in read_json(instances_of(root))["categories"]}
    names = np.array([names[category] for category in sorted(names)])
    labels = metrics.read_instance_labels(instances_of(root), records.image_ids)
    rng = np.random.default_rng(settings.seed)
    first = chosen_image(settings.image, records.image_ids, labels, rng)
    shown = [(None, first)]
    for zeta, others in zip(ZETAS, at_distances(labels, first), strict=True):
        if len(others):
            shown.append((zeta, int(rng.choice(others))))
    panels = [
        {
            "zeta": zeta,
            "image": int(records.image_ids[row]),
            "categories": names[labels[row]].tolist(),
            "captions": records.captions[records.caption_image == row].tolist(),
        }
        for zeta, row in shown
    ]
    return draw_panels(panels, [split.picture(row) for _, row in shown]), {"panels": panels}


def chosen_image(wanted, image_ids, labels, rng):
    """The row of the image with the id `wanted`, or of one that has examples of every ζ."""
    if wanted is not None:
        rows = np.flatnonzero(np.asarray(image_ids) == wanted)
        if not len(rows):
            raise InputError(f"--image {wanted}: expected the id of an image of the test split")
        return int(rows[0])
    for row in rng.permutation(np.flatnonzero(labels.sum(axis=1) >= LEAST_CATEGORIES)):
        if all(len(others) for others in at_distances(labels, row)):
            return int(row)
    raise InputError(
        f"no image of the test split has {LEAST_CATEGORIES} categories and others at every ζ of "
        f"{ZETAS}; choose one by --image"
    )


def at_distances(labels, row):
    """For each ζ the other rows of `labels`, bool `(images, categories)`, that differ from `row` in
    exactly ζ categories."""
    distances = np.count_nonzero(labels != labels[row], axis=1)
    distances[row] = -1
    return [np.flatnonzero(distances == zeta) for zeta in ZETAS]


@styled
def draw_panels(panels, pictures):
    """Four columns: the image, then one of each ζ, with its categories above and its captions
    below."""
    figure = new_figure(3.2 * len(panels), 6.0)
    grid = figure.add_gridspec(2, len(panels), height_ratios=[1.0, 1.4])
    for column, (panel, picture) in enumerate(zip(panels, pictures, strict=True)):
        axis = figure.add_subplot(grid[0, column])
        show_image(axis, picture)
        heading = "the image" if panel["zeta"] is None else f"ζ = {panel['zeta']}"
        axis.set_title(f"{heading}\n{textwrap.fill(', '.join(panel['categories']), 36)}", size=8)
        axis = figure.add_subplot(grid[1, column])
        axis.set_axis_off()
        lines = [textwrap.fill(f"– {caption}", 44) for caption in panel["captions"]]
        axis.text(0.0, 1.0, "\n".join(lines), va="top", size=7)
    return figure


FIGURES = {"C.1": categories_per_image, "C.2": plausible_examples}

if __name__ == "__main__":
    cli.run(main)
