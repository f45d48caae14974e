"""Pishdad et al., figures 4 to 7: items of high and of low uncertainty with all that is plausible.

    python -m studies.plausible_matches --run runs/gaussian_vsepp_coco \\
        --annotations-dir eccv_caption
    python -m studies.plausible_matches --smoke          # a preset on Toy Birds, seconds

"Uncertainty-based Cross-Modal Retrieval with Probabilistic Representations", 2022, section 6.3.
Five images and five captions are drawn of the most uncertain tenth, and of the most certain one,
each with its plausible matches in CxC's annotations. Without --annotations-dir those match that the
data know of: the truth of Toy Scenes, else equal labels. The paper does not say how far "high" and
"low" reach: it is `--share` here. Writes `high_images.png` (figure 4), `high_captions.png` (5),
`low_images.png` (6), `low_captions.png` (7) and `items.json` into --out.
"""

import json
import textwrap
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from halo_search.errors import InputError
from halo_search.files import write_text
from halo_search.files.written import Written
from studies import opened
from zoo import cli, metrics, plots
from zoo.cli import Share, Size, setting
from zoo.plots.style import new_figure, show_image, styled, with_minus

SHOWN = 5  # matches of a caption that are drawn as pictures; captions are all told
CELL, TEXT = 1.45, 3.0  # inches


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Which run, and how many items."""

    run: str = setting("toy_birds_pcme", "a finished run of Gaussians on pictures, or a preset")
    out: Path = setting(Path("runs/plausible_matches"), "folder to write")
    data_dir: Path | None = setting(None, "the run's data set, if it has moved")
    annotations_dir: Path | None = setting(None, "files of ECCV Caption, which have CxC's matches")
    items: Size = setting(5, "items per figure", source="Pishdad et al., section 6.3")
    share: Share = setting(0.1, "of the items that are drawn from, at each end")
    smoke: bool = setting(False, "smoke test with some images only")
    seed: int = setting(0, "seed of what is drawn")


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    pages = [f"{end}_{side}.png" for end in ("high", "low") for side in ("images", "captions")]
    Written(settings.out).claim("items.json", *pages)
    model, split = opened.opened(settings.run, settings.data_dir, settings.smoke)
    if split.picture is None:
        raise InputError(f"--run {settings.run}: expected a run on pictures; it reads features")
    encoded = opened.gaussians(settings.run, model, split)
    of_image, of_caption = matches(split, settings.annotations_dir)
    rng = np.random.default_rng(settings.seed)
    results = {}
    for end in ("high", "low"):
        for side, uncertainty, of_item, draw in (
            ("images", encoded.image_uncertainty, of_image, draw_images),
            ("captions", encoded.caption_uncertainty, of_caption, draw_captions),
        ):
            chosen = drawn(uncertainty, of_item, end, settings, rng)
            name = f"{end}_{side}"
            figure = draw(split, chosen, [of_item[i] for i in chosen], uncertainty)
            plots.save(figure, settings.out / f"{name}.png")
            results[name] = [
                {"item": int(i), "uncertainty": float(uncertainty[i]), "matches": of_item[i]}
                for i in chosen
            ]
    write_text(settings.out / "items.json", json.dumps(results, indent=2) + "\n")
    print(f"{settings.out}: figures 4 to 7 of {split.records.summary()}")
    return results


def matches(split, annotations_dir=None):
    """What is plausible: positions of captions for each image, of images for each caption."""
    records = split.records
    if annotations_dir is not None:
        image_row = {image: row for row, image in enumerate(records.image_ids.tolist())}
        caption_row = {caption: row for row, caption in enumerate(records.caption_ids.tolist())}
        return (
            rows_of(annotations_dir / "cxc_image_to_caption.json", image_row, caption_row),
            rows_of(annotations_dir / "cxc_caption_to_image.json", caption_row, image_row),
        )
    truth = split.truth
    if truth is None:
        truth = records.image_labels[:, None] == records.caption_labels[None, :]
    return tuple(
        {item: np.flatnonzero(row).tolist() for item, row in enumerate(of_side)}
        for of_side in (truth, truth.T)
    )


def rows_of(path, query_row, gallery_row):
    """A file of matches by positions, of the queries and answers that are in the split."""
    return {
        query_row[query]: [gallery_row[answer] for answer in answers if answer in gallery_row]
        for query, answers in metrics.read_matches(path).items()
        if query in query_row
    }


def drawn(uncertainty, of_item, end, settings, rng):
    """Items of one end that have plausible matches, drawn at random, the farthest out first."""
    known = np.array([item for item in sorted(of_item) if of_item[item]])
    order = known[np.argsort(uncertainty[known], kind="stable")]
    if end == "high":
        order = order[::-1]
    few = order[: max(settings.items, round(settings.share * len(order)))]
    place = np.sort(rng.permutation(len(few))[: settings.items])
    return few[place]


@styled
def draw_images(split, chosen, retrieved, uncertainty):
    """One row an image: the picture, and every caption that is plausible for it."""
    captions = split.records.captions
    lines = [
        [line for caption in of_one for line in textwrap.wrap(f"– {captions[caption]}", 96)]
        for of_one in retrieved
    ]
    heights = [max(CELL, 0.17 * len(of_one) + 0.3) for of_one in lines]
    figure = new_figure(9.2, sum(heights) + 0.3)
    grid = figure.add_gridspec(len(chosen), 2, width_ratios=[1.6, 7.6], height_ratios=heights)
    for row, (image, of_one) in enumerate(zip(chosen, lines, strict=True)):
        axis = figure.add_subplot(grid[row, 0])
        show_image(axis, split.picture(image))
        axis.set_xlabel(as_text(uncertainty[image]), fontsize=8)
        axis = figure.add_subplot(grid[row, 1])
        axis.set_axis_off()
        axis.text(0, 0.5, "\n".join(of_one), va="center", fontsize=8, linespacing=1.4)
    return figure


@styled
def draw_captions(split, chosen, retrieved, uncertainty):
    """One row a caption: its words, and the first pictures that are plausible for it."""
    figure = new_figure(TEXT + CELL * SHOWN, (CELL + 0.2) * len(chosen) + 0.3)
    grid = figure.add_gridspec(len(chosen), SHOWN + 1, width_ratios=[TEXT, *[CELL] * SHOWN])
    for row, (caption, images) in enumerate(zip(chosen, retrieved, strict=True)):
        axis = figure.add_subplot(grid[row, 0])
        axis.set_axis_off()
        words = textwrap.fill(split.records.captions[caption], 34)
        more = f", {len(images):,} plausible" if len(images) > SHOWN else ""
        axis.text(
            0, 0.5, f"{words}\n{as_text(uncertainty[caption])}{more}", va="center", fontsize=8.5
        )
        for column, image in enumerate(images[:SHOWN]):
            show_image(figure.add_subplot(grid[row, column + 1]), split.picture(image))
    return figure


def as_text(value):
    return f"uncertainty {with_minus(f'{value:.3g}')}"


if __name__ == "__main__":
    cli.run(main)
