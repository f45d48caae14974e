"""DAA's figures 1 (b), 1 (c), 3 and 4 from finished runs: a base model, + Smooth-AP, + DAA.

    python -m studies.daa_figures --runs runs/base runs/smooth_ap runs/daa

Li et al., "A Differentiable Semantic Metric Approximation in Probabilistic Embedding for
Cross-Modal Retrieval", NeurIPS 2022. All runs must have the same test split. Writes into --out:

- `positives.png`, figure 1 (b): how many pairs of the split are above a CIDEr score.
- `retrieved.png`, figure 1 (c), of runs on pictures: the first images of one caption by each run,
  with their CIDEr; which caption is said in `studies/daa_retrieved.py`.
- `asp_at.png`, figure 3: ASP among the N items of a query whose CIDEr is highest.
- `asp.png`, figure 4: ASP after each epoch, of runs with `--asp`.
- `figures.json`: the numbers.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from studies import daa_retrieved
from studies.daa_metrics import pairs_above, semantic_precision_at
from studies.daa_plots import asp_curves, positives_plot, precision_at_plot
from zoo import cli, evaluation, plots, training
from zoo.cli import setting
from zoo.data.records.semantics import semantics
from zoo.errors import InputError
from zoo.files import RunFolder, write_text
from zoo.files.written import Written
from zoo.metrics.blocks import as_similarity
from zoo.metrics.cider_score import VARIANTS

DEPTHS = 12  # points of a curve


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Which runs."""

    runs: tuple[str, ...]
    out: Path = setting(Path("runs/daa_figures"), "folder to write")
    semantics: Literal[VARIANTS] = setting("cider", "similarity measure between captions")
    shown: int = setting(100, "images of figure 1 (c)", source="DAA, figure 1")
    thresholds: tuple[float, ...] = setting(
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
        pairs = encoded.pairs(model.similarity).kept()
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
    of_image = np.unique(records.caption_labels, return_counts=True)
    counts = dict(zip(*(part.tolist() for part in of_image), strict=True))
    return {
        "thresholds": list(settings.thresholds),
        "pairs_above": pairs_above(matrix, settings.thresholds),
        "annotated": sum(counts.get(label, 0) for label in records.image_labels.tolist()),
    }


def retrieved(settings, split, ranked, matrix):
    """Figure 1 (c): one caption's first images by each run."""
    records = split.records

    def annotated(caption):
        label = records.caption_labels[caption]
        return np.flatnonzero(records.image_labels == label).tolist()

    pairs = {name: as_similarity(scores) for name, scores in ranked.items()}
    caption, found, values = daa_retrieved.choose(
        pairs, as_similarity(matrix), annotated, settings.shown
    )
    if split.picture is not None:
        words, own = records.captions[caption], annotated(caption)
        figure = daa_retrieved.draw(words, found, values, split.picture, own)
        plots.save(figure, settings.out / "retrieved.png")
    items = {
        name: {"images": images.tolist(), "scores": values[name].tolist()}
        for name, images in found.items()
    }
    return {"caption": str(records.captions[caption]), "runs": items}


def precision_at(pairs, matrix):
    """ASP at depths that grow alike, up to the whole gallery of each direction."""
    found = {}
    for side, gallery in (("i2t", pairs.shape[1]), ("t2i", pairs.shape[0])):
        depths = np.unique(np.geomspace(min(5, gallery), gallery, DEPTHS).round().astype(int))
        asp = semantic_precision_at(pairs, matrix, depths.tolist())[side]
        found[side] = {"depths": depths.tolist(), "asp": asp}
    return found


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


if __name__ == "__main__":
    cli.run(main)
