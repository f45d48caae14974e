"""The README's picture: an answered query, a declined one, and what the confidence is worth.

    python -m tools.first_screen                        # docs/images/first_screen*.png
    python -m tools.first_screen --model runs/birds     # of a run; do not commit others' photos

Every query's probability is of a calibration on four fifths of the other queries.
"""

import argparse
import textwrap
from pathlib import Path

import numpy as np

import zoo
from tools import dark
from zoo import data, evaluation
from zoo.data import sources, toy_birds
from zoo.evaluation.calibration import cross_fitted
from zoo.files import RunFolder
from zoo.files.cache import cache_folder
from zoo.report.style import (
    DIRECTION_STYLE,
    RIGHT,
    WRONG,
    draw_shares,
    mark,
    new_figure,
    show_image,
    styled,
)

TOP, BINS, SHOWN = 4, 8, 256


def main(argv=None):
    options = _options(argv)
    model = zoo.from_preset(options.model)
    described = zoo.list_presets().get(options.model)
    described = RunFolder.existing(options.model).data if described is None else described["data"]
    split = data.open(described, "test")
    encoded = evaluation.encode(model, split.records, split.source)
    found = {side: _calibrated(encoded, model.similarity, side) for side in DIRECTION_STYLE}
    scores = np.asarray(model.similarity(encoded.images, encoded.captions))
    rows = _rows(split.records, scores, *found["t2i"])
    figure = draw(rows, found, _large(described, split))
    print(*dark.save_both(figure, options.out, dpi=130))


def _calibrated(encoded, similarity, side):
    """`(probability, right)` of every query that has a match, calibrated on others."""
    answers = evaluation.Answers.of(encoded, similarity, side)
    return cross_fitted(answers), answers.correct


def _rows(records, scores, probability, right):
    """The surest right caption, and the least sure one: caption, probability, images, which fit."""
    sure = np.argmax(np.where(right, probability, -1))
    for query in (sure, np.argmin(probability)):
        best = np.argsort(-scores[:, query], kind="stable")[:TOP]
        fits = records.image_labels[best] == records.caption_labels[query]
        yield records.captions[query], probability[query], best, fits


def _large(described, split):
    """A function from an image's index to pixels that look well, whatever the network reads."""
    if described["loader"] != "toy_birds":
        return split.picture
    birds = toy_birds.generate(cache_folder(f"toy_birds_{SHOWN}"), image_size=SHOWN, part="test")
    records = data.cub.load(birds, split="test", verbose=False).records
    assert list(records.image_ids) == list(split.records.image_ids)
    return sources.Pictures(records, SHOWN, cache=False).picture


@styled
def draw(rows, found, picture):
    figure = new_figure(11.0, 4.3)
    left, right = figure.subfigures(1, 2, width_ratios=(2.1, 1.0))
    grid = left.add_gridspec(2, TOP + 1, width_ratios=[1.5] + [1.0] * TOP)
    for row, (caption, probability, best, fits) in enumerate(rows):
        axis = left.add_subplot(grid[row, 0])
        axis.axis("off")
        answered = row == 0
        verdict = "Answered" if answered else "Declined"
        color = RIGHT if answered else WRONG
        axis.text(0, 0.98, verdict, color=color, fontsize=13, weight="bold", va="top")
        stated = "under 1 %" if probability < 0.01 else f"{100 * probability:.0f} %"
        axis.text(0, 0.78, f"{stated} likely to be right", color=color, va="top")
        quoted = textwrap.fill(f"“{caption.strip().rstrip('.')}”", 24)
        axis.text(0, 0.58, quoted, fontsize=9, va="top")
        for place, (image, fit) in enumerate(zip(best, fits, strict=True), start=1):
            axis = left.add_subplot(grid[row, place])
            show_image(axis, picture(image))
            axis.set_xlabel(f"{place}  {mark(fit)}", color=RIGHT if fit else WRONG, fontsize=11)
    axis = right.subplots()
    for side, (probability, correct) in found.items():
        parts = np.array_split(np.argsort(-probability, kind="stable"), BINS)
        hits = [correct[part].sum() for part in parts]
        stated = [100 * probability[part].mean() for part in parts]
        draw_shares(axis, stated, hits, [len(part) for part in parts], **DIRECTION_STYLE[side])
    axis.plot([0, 100], [0, 100], color="#666666", linewidth=1, linestyle=":", label="as stated")
    most = max(max(p.max() for p, _ in found.values()) * 100, 50)
    axis.set(
        xlabel="stated probability in %",
        ylabel="first answer is right in %",
        xlim=(0, min(100, most + 5)),
        ylim=(0, 100),
    )
    axis.set_title("What the probability is worth")
    axis.legend(loc="upper left")
    return figure


def _options(argv):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="toy_birds_pfe", help="a preset or a run folder")
    parser.add_argument("--out", type=Path, default=Path("docs/images/first_screen.png"))
    return parser.parse_args(argv)


if __name__ == "__main__":
    main()
