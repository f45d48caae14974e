"""DAA's figures 1 (b), 1 (c), 3 and 4 from finished runs: a base model, + Smooth-AP, + DAA.

    python -m studies.daa_figures --runs runs/base runs/smooth_ap runs/daa

Li et al., "A Differentiable Semantic Metric Approximation in Probabilistic Embedding for
Cross-Modal Retrieval", NeurIPS 2022. All runs must have the same test split. Writes into --out:

- `positives.png`, figure 1 (b): how many pairs of the split are above a CIDEr score.
- `retrieved.png`, figure 1 (c), of runs on pictures: the first images of one caption by each run,
  with their CIDEr; see `choose`.
- `asp_at.png`, figure 3: ASP among the N items of a query whose CIDEr is highest.
- `asp.png`, figure 4: ASP after each epoch, of runs with `--asp`.
- `figures.json`: the numbers.
"""

import json
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from halo_search.errors import InputError
from halo_search.files import write_text
from halo_search.files.written import Written
from zoo import cli, evaluation, plots, training
from zoo.cli import Share, Size, setting
from zoo.data.records.semantics import semantics
from zoo.metrics.blocks import as_similarity, row_blocks
from zoo.metrics.cider_factors import VARIANTS
from zoo.metrics.semantic_precision import agreement, checked, row_pairs
from zoo.models.run_folder import RunFolder
from zoo.plots.style import (
    DIRECTIONS,
    GREY,
    MARKERS,
    PALETTE,
    RIGHT,
    new_figure,
    show_image,
    styled,
)

DEPTHS = 12  # points of a curve
COLUMNS, CELL = 10, 0.95  # of figure 1 (c); inches


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Which runs."""

    runs: tuple[str, ...]
    out: Path = setting(Path("runs/daa_figures"), "folder to write")
    semantics: Literal[VARIANTS] = setting("cider", "similarity measure between captions")
    shown: Size = setting(100, "images of figure 1 (c)", source="DAA, figure 1")
    thresholds: tuple[Share, ...] = setting(
        (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5), "semantic scores of figure 1 (b)"
    )


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    drawn = ("retrieved.png", "positives.png", "asp_at.png", "asp.png")
    Written(settings.out).claim("figures.json", *drawn)
    results = {"precision_at": {}, "histories": {}}
    semantic = summary = None
    ranked = {}
    for name in settings.runs:
        model, split = evaluation.open_run(name)
        if semantic is None:
            semantic = semantics(split.records, settings.semantics)
            summary = split.records.summary()
            results |= positives(settings, split.records, semantic.matrix())
        elif split.records.summary() != summary:
            raise InputError(
                f"{name}: expected the test split of {settings.runs[0]}, {summary}; found "
                f"{split.records.summary()}"
            )
        encoded = evaluation.encode(model, split.records, split.source)
        pairs = encoded.pairs(model.similarity).in_memory()
        results["precision_at"][Path(name).name] = precision_at(pairs, semantic.matrix())
        ranked[Path(name).name] = pairs
        history = training.read_history(RunFolder.existing(name).history_path)
        results["histories"][Path(name).name] = history
    draw(settings.out, results)
    results["retrieved"] = retrieved(settings, split, ranked, semantic.matrix())
    histories = results.pop("histories")
    write_text(settings.out / "figures.json", json.dumps(results, indent=2) + "\n")
    print(f"{len(histories)} runs; figures.json and the figures are in {settings.out}")
    return results


def positives(settings, records, matrix):
    """How many pairs are above each score, and how many are annotated."""
    annotated = (records.image_labels[:, None] == records.caption_labels).sum()
    thresholds = list(settings.thresholds)
    above = pairs_above(matrix, thresholds)
    return {"thresholds": thresholds, "pairs_above": above, "annotated": int(annotated)}


def retrieved(settings, split, ranked, matrix):
    """Figure 1 (c): one caption's first images by each run."""
    records = split.records

    def annotated(caption):
        label = records.caption_labels[caption]
        return np.flatnonzero(records.image_labels == label).tolist()

    pairs = {name: as_similarity(scores) for name, scores in ranked.items()}
    caption, results, values = choose(pairs, as_similarity(matrix), annotated, settings.shown)
    if split.picture is not None:
        words, is_annotated = records.captions[caption], annotated(caption)
        figure = draw_retrieved(words, results, values, split.picture, is_annotated)
        plots.save(figure, settings.out / "retrieved.png")
    items = {
        name: {"images": images.tolist(), "scores": values[name].tolist()}
        for name, images in results.items()
    }
    return {"caption": str(records.captions[caption]), "runs": items}


def precision_at(pairs, matrix):
    """ASP at depths that grow alike, up to the whole gallery of each direction."""
    precisions = {}
    for side, gallery in (("i2t", pairs.shape[1]), ("t2i", pairs.shape[0])):
        depths = np.unique(np.geomspace(min(5, gallery), gallery, DEPTHS).round().astype(int))
        asp = semantic_precision_at(pairs, matrix, depths.tolist())[side]
        precisions[side] = {"depths": depths.tolist(), "asp": asp}
    return precisions


def draw(out, results):
    out.mkdir(parents=True, exist_ok=True)
    figure = positives_plot(results["thresholds"], results["pairs_above"], results["annotated"])
    plots.save(figure, out / "positives.png")
    curves = results["precision_at"]
    first = next(iter(curves.values()))
    figure = precision_at_plot(
        {side: first[side]["depths"] for side in first},
        {name: {side: of[side]["asp"] for side in of} for name, of in curves.items()},
    )
    plots.save(figure, out / "asp_at.png")
    histories = results["histories"]
    if any("val_i2t_asp" in history for history in histories.values()):
        plots.save(asp_curves(histories), out / "asp.png")


def semantic_precision_at(similarity, semantic, depths):
    """ASP among the N items of each query that are semantically nearest, for several N."""
    similarity, semantic = checked(similarity, semantic)
    return {
        "i2t": _one_direction(similarity, semantic, depths),
        "t2i": _one_direction(similarity.transposed(), semantic.transposed(), depths),
    }


def _one_direction(similarity, semantic, depths):
    total = np.zeros(len(depths))
    for scores, truth in row_pairs(similarity, semantic):
        nearest = np.argsort(-truth, kind="stable")
        scores, truth = scores[nearest], truth[nearest]
        total += np.array([agreement(scores[:n], truth[:n]) for n in depths])
    return (total / similarity.shape[0]).tolist()


def pairs_above(semantic, thresholds):
    """How many pairs of an image and a caption have a semantic score above each threshold."""
    thresholds = np.asarray(thresholds, float)
    counts = np.zeros(len(thresholds), int)
    for _, rows in row_blocks(as_similarity(semantic), name="semantic"):
        ordered = np.sort(rows, axis=None)
        counts += ordered.size - np.searchsorted(ordered, thresholds, side="right")
    return counts.tolist()


def choose(pairs, matrix, annotated, shown):
    """The caption whose retrieved sets differ most in meaning though all runs are right at once."""
    best = None
    by_caption = {name: scores.transposed() for name, scores in pairs.items()}
    meaning = matrix.transposed()
    for caption in range(meaning.shape[0]):
        candidates = {
            name: np.argsort(-scores.rows(caption, caption + 1)[0], kind="stable")[:shown]
            for name, scores in by_caption.items()
        }
        scores = meaning.rows(caption, caption + 1)[0]
        values = {name: scores[images] for name, images in candidates.items()}
        means = [of_run.mean() for of_run in values.values()]
        is_annotated = annotated(caption)
        is_right = all(images[0] in is_annotated for images in candidates.values())
        key = (is_right, max(means) - min(means))
        if best is None or key > best[0]:
            best = key, caption, candidates, values
    return best[1:]


@styled
def draw_retrieved(caption, results, values, picture, annotated):
    """One block of pictures a run, the best first, the CIDEr of each below it."""
    shown = len(next(iter(results.values())))
    rows = -(-shown // COLUMNS)
    figure = new_figure(CELL * COLUMNS, len(results) * (rows * (CELL + 0.2) + 0.35) + 0.5)
    figure.suptitle(textwrap.fill(f"“{caption}”", 90))
    blocks = np.atleast_1d(figure.subfigures(len(results), 1))
    for block, (name, images) in zip(blocks, results.items(), strict=True):
        block.suptitle(f"{name}: mean CIDEr {values[name].mean():.3f}", fontsize=9)
        grid = block.subplots(rows, COLUMNS, squeeze=False)
        for axis in grid.ravel()[shown:]:
            axis.set_axis_off()
        for axis, image, value in zip(grid.ravel(), images, values[name], strict=False):
            show_image(axis, picture(image))
            look = {"color": RIGHT, "fontweight": "bold"} if image in annotated else {}
            axis.set_xlabel(f"{value:.2f}", fontsize=7, **look)
    return figure


@styled
def positives_plot(thresholds, counts, annotated):
    """The number of pairs above each semantic score, beside that of the annotated pairs."""
    figure = new_figure(5.2, 3.6)
    axis = figure.subplots()
    shown = np.maximum(counts, 0.5)  # none is drawn at the foot of the logarithmic axis
    axis.plot(thresholds, shown, marker=MARKERS[0], color=PALETTE[0], label="pairs above")
    axis.axhline(annotated, color=GREY, linestyle="--", label=f"annotated, {annotated:,}")
    axis.set(xlabel="CIDEr with the image's captions", ylabel="pairs", yscale="log")
    axis.legend()
    return figure


@styled
def precision_at_plot(depths, precisions):
    """ASP among the N semantically nearest items, one panel a direction, one curve a system."""
    figure = new_figure(9.0, 3.4)
    axes = figure.subplots(1, 2, sharey=True)
    for axis, (side, name) in zip(axes, DIRECTIONS.items(), strict=True):
        for number, (system, precision) in enumerate(precisions.items()):
            color, marker = PALETTE[number % len(PALETTE)], MARKERS[number % len(MARKERS)]
            values = 100 * np.asarray(precision[side])
            axis.plot(depths[side], values, color=color, marker=marker, label=system)
        axis.set(title=name, xlabel="N semantically nearest items", xscale="log")
    axes[0].set_ylabel("ASP (%)")
    axes[1].legend()
    return figure


@styled
def asp_curves(histories):
    """ASP over the epochs, one panel a direction, one curve a system."""
    figure = new_figure(9.0, 3.4)
    axes = figure.subplots(1, 2, sharey=True)
    for axis, (side, name) in zip(axes, DIRECTIONS.items(), strict=True):
        for place, (system, history) in enumerate(histories.items()):
            values = np.asarray(history.get(f"val_{side}_asp", []), float)
            epochs = np.flatnonzero(np.isfinite(values))
            if not len(epochs):
                continue
            color, marker = PALETTE[place % len(PALETTE)], MARKERS[place % len(MARKERS)]
            axis.plot(epochs + 1, values[epochs], color=color, marker=marker, label=system)
        axis.set(title=name, xlabel="epoch")
    axes[0].set_ylabel("ASP (%)")
    axes[1].legend()
    return figure


if __name__ == "__main__":
    cli.run(main)
