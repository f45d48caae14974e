"""PCME's figures 5 to 8, D.1, E.1, E.3 and F.1 to F.4 as the paper draws them, from finished runs.

    python -m studies.pcme_figures --figure 5 --runs runs/pcme_2d
    python -m studies.pcme_figures --figure 6 --runs runs/pcme_coco --annotations-dir eccv_caption
    python -m studies.pcme_figures --figure 7 --runs runs/pcme_cub
    python -m studies.pcme_figures --figure D.1 --runs runs/pcme_cub runs/pcme_cub_isotropic
    python -m studies.pcme_figures --figure E.3 --runs runs/pcme_coco runs/pvse_coco runs/vsrn_coco
    python -m studies.pcme_figures --figure F.1 --smoke     # a preset on Toy Birds, seconds

Chun et al., "Probabilistic Embeddings for Cross-Modal Retrieval", CVPR 2021. Figures D.2, D.3 and
E.2 are drawn by their sweeps (`studies/ablations.py`).

- 5: images and captions of nine classes as 50 % ellipses, a panel each; the generic caption "this
  bird has <unk> … <unk>" as a red 99 % ellipse.
- 6, and PCME++'s figure 5: Recall@1 in ten bins of the query's uncertainty. With
  `--annotations-dir` galleries are COCO's five folds of 1,000 images, as in the papers; the ten
  bins are of all queries.
- 7: mean σ over the share of erased pixels, and over the share of words that become <unk>.
- 8: ellipses of a mix of two images and of an erased image beside the originals'; figure.json has
  the shares of areas over all drawn pairs.
- D.1: the variances of the first run, sorted by dimension, and the one of an isotropic run.
- E.1: R-Precision by match probability over its J samples, and by what needs none.
- E.3: PMRP by ζ of every run that was measured with `--annotations-dir` and instances.
- F.1: mean log σ over the share of erased pixels, and over the number of <unk> that are appended.
- F.2: the words of highest TF-IDF in five bins of the caption's uncertainty.
- F.3, F.4, and PCME++'s figures 6 and C.2: the most and the least certain images, then captions,
  with their five best answers.
"""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from halo_search.errors import InputError
from halo_search.files import write_text
from halo_search.files.written import Written
from studies import opened, pcme_drawing, set_algebra
from studies import pcme_inputs as inputs
from zoo import cli, metrics, plots, similarities
from zoo.cli import Size, setting
from zoo.data import captions as texts
from zoo.metrics.blocks import as_similarity
from zoo.models.run_folder import RunFolder
from zoo.plots.ellipses import items_of

PRESET = "toy_birds_pcme"
GENERIC, UNKNOWN_WORDS = "this bird has", 8  # followed by so many <unk>
APPENDED = (0, 1, 2, 4, 8)
CLASSES, ITEMS = 9, 3  # of figure 5
DEPTH_FREE = {"mean only": "euclidean", "2-Wasserstein": "wasserstein_2", "ELK": "elk"}
DEPTH_FREE |= {"Jeffreys (printed as JS)": "jeffreys", "Bhattacharyya": "bhattacharyya"}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Which figure, and of which runs."""

    figure: Literal["5", "6", "7", "8", "D.1", "E.1", "E.3", "F.1", "F.2", "F.3", "F.4"]
    runs: tuple[str, ...] = setting((PRESET,), "finished runs, or names of presets")
    out: Path | None = setting(None, "folder to write; default: runs/pcme_figures/FIGURE")
    data_dir: Path | None = setting(None, "the runs' data set, if it has moved")
    annotations_dir: Path | None = setting(None, "files of ECCV Caption, for the folds of figure 6")
    samples: tuple[Size, ...] = setting((1, 3, 5, 7, 15), "the J of figure E.1")
    items: Size = setting(256, "images and captions to corrupt in figures 7, 8 and F.1")
    smoke: bool = setting(False, "smoke test with some images only")
    seed: int = setting(0, "seed of what is erased, dropped and sampled")

    def __post_init__(self):
        if self.out is None:
            object.__setattr__(self, "out", Path("runs/pcme_figures") / self.figure)


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    Written(settings.out).claim("figure.png", "figure.json")
    figure, numbers = FIGURES[settings.figure](settings)
    settings.out.mkdir(parents=True, exist_ok=True)
    plots.save(figure, settings.out / "figure.png")
    write_text(settings.out / "figure.json", json.dumps(numbers, indent=2) + "\n")
    print(f"figure {settings.figure} of {' '.join(settings.runs)}: {settings.out / 'figure.png'}")
    return numbers


def first_run(settings):
    """`(model, split, encoded)` of the first run."""
    name = settings.runs[0]
    model, split = opened.opened(name, settings.data_dir, settings.smoke)
    return model, split, opened.gaussians(name, model, split)


def shown(settings):
    """The first run with what its figures show."""
    model, split, encoded = first_run(settings)
    return inputs.Shown(model, encoded, split.picture, settings.items, settings.seed)


def plane(settings):
    """Figure 5."""
    model, _, encoded = first_run(settings)
    labels = np.unique(encoded.records.image_labels)[:CLASSES]
    items = items_of(encoded, labels, ITEMS)
    ids = np.array(model.tokenize([GENERIC]))
    ids = with_unknown(model.tokenizer, ids, UNKNOWN_WORDS)
    generic = model.caption_encoder.predict(ids, verbose=0)
    principal = plots.principal_plane(np.concatenate([items[0]["mean"], items[2]["mean"]]))
    figure = pcme_drawing.two_panels(*items, principal, generic)
    sizes = {"generic": generic["log_variance"], "captions": encoded.captions["log_variance"]}
    return figure, {name: float(np.mean(v, dtype=float)) / 2 for name, v in sizes.items()}


def recall_by_uncertainty(settings):
    """Figure 6, and figure 5 of PCME++."""
    model, _, encoded = first_run(settings)
    pairs, records = encoded.pairs(model.similarity).in_memory(), encoded.records
    folds = [(np.arange(records.num_images), np.arange(records.num_captions))]
    if settings.annotations_dir is not None:
        ids = records.image_ids, records.caption_ids
        benchmark = metrics.check_coco_ids(*ids, settings.annotations_dir)
        folds = [(benchmark.rows[a], benchmark.columns[b]) for a, b in benchmark.folds()]
    curves = {side: ([], []) for side in ("i2t", "t2i")}
    for rows, columns in folds:
        of_fold = as_similarity(pairs).take(rows, columns)
        truth = metrics.LabelRelevance(records.image_labels[rows], records.caption_labels[columns])
        curves["i2t"][0].append(metrics.rank_queries(of_fold, truth))
        curves["i2t"][1].append(encoded.image_uncertainty[rows])
        curves["t2i"][0].append(metrics.rank_queries(of_fold.transposed(), truth.transposed()))
        curves["t2i"][1].append(encoded.caption_uncertainty[columns])
    bins = {
        side: metrics.recall_in_bins(joined(ranks), np.concatenate(values))
        for side, (ranks, values) in curves.items()
    }
    figure = plots.recall_by_uncertainty_plot(**bins)
    as_lists = {s: {k: np.asarray(v).tolist() for k, v in b.items()} for s, b in bins.items()}
    return figure, {"galleries": len(folds), **as_lists}


def joined(ranks):
    """`QueryRanks` of several galleries as one."""
    names = [field.name for field in dataclasses.fields(metrics.QueryRanks)]
    return metrics.QueryRanks(
        *(np.concatenate([getattr(of_one, name) for of_one in ranks]) for name in names)
    )


def erased(settings):
    """Figure 7: both in percent."""
    run = shown(settings)
    images, words = chosen_items(run)
    curves = {}
    if run.picture is not None:
        curves["Erased pixels"] = inputs.ERASED, inputs.erased_uncertainty(run, images)
    lost = inputs.dropped_uncertainty(run, words, "mask")
    curves["Words that become <unk>"] = inputs.DROPPED, lost
    panels = {
        name: (100 * np.array(levels), values, "share lost (%)")
        for name, (levels, values) in curves.items()
    }
    return inputs.corruption_plot(panels, "geometric mean of σ"), means(curves)


def appended(settings):
    """Figure F.1: erased pixels in percent, and a number of appended <unk>."""
    run = shown(settings)
    images, words = chosen_items(run)
    curves, labels = {}, {}
    if run.picture is not None:
        values = np.log(inputs.erased_uncertainty(run, images))
        curves["Erased pixels"] = 100 * np.array(inputs.ERASED), values
        labels["Erased pixels"] = "share erased (%)"
    ids = texts.token_ids(run.model.tokenizer, run.encoded.records.captions[words])
    longer = (with_unknown(run.model.tokenizer, ids, count) for count in APPENDED)
    columns = [inputs.measured(run, "captions", captions) for captions in longer]
    curves["Appended <unk>"] = np.array(APPENDED), np.log(np.stack(columns, axis=1))
    labels["Appended <unk>"] = "number of <unk>"
    panels = {name: (*curve, labels[name]) for name, curve in curves.items()}
    return inputs.corruption_plot(panels, "log σ"), means(curves)


def chosen_items(run):
    return run.choose(run.encoded.records.num_images), run.choose(run.encoded.records.num_captions)


def means(curves):
    """The numbers of a figure: the level, and the mean over the items."""
    return {
        name: {"levels": np.asarray(levels).tolist(), "mean": values.mean(axis=0).tolist()}
        for name, (levels, values) in curves.items()
    }


def with_unknown(tokenizer, ids, count):
    """Token ids with so many unknown words behind the last one, as far as there is room."""
    words = getattr(tokenizer, "word_ids", None)
    if words is None or words.special:
        raise InputError("figures 5 and F.1 append <unk>, which takes a tokenizer of whole words")
    ids = np.array(ids)
    place = np.arange(ids.shape[1]) - (ids != 0).sum(axis=1, keepdims=True)
    return np.where((place >= 0) & (place < count), words.unknown, ids)


def isotropy(settings):
    """Figure D.1."""
    variances = {}
    for name in settings.runs:
        model, split = opened.opened(name, settings.data_dir, settings.smoke)
        encoded = opened.gaussians(name, model, split)
        variances[name] = {
            side: np.exp(np.asarray(embedding["log_variance"], float)).mean(axis=0)
            for side, embedding in (("images", encoded.images), ("captions", encoded.captions))
        }
    numbers = {n: {s: v.tolist() for s, v in sides.items()} for n, sides in variances.items()}
    return pcme_drawing.sorted_variances(variances), numbers


def samples(settings):
    """Figure E.1."""
    model, _, encoded = first_run(settings)
    scale, shift = float(model.similarity.scale), float(model.similarity.shift)

    def precision(similarity):
        results = metrics.evaluate_retrieval(
            encoded.pairs(similarity).in_memory(), encoded.relevance
        )
        return [results[f"{side}_r_precision"] for side in ("i2t", "t2i")]

    drawn = {
        count: precision(similarities.MatchProbability(scale, shift, count, settings.seed))
        for count in settings.samples
    }
    free = {name: precision(similarities.get(key, model)) for name, key in DEPTH_FREE.items()}
    return pcme_drawing.over_samples(drawn, free), {"samples": drawn, "without": free}


def plausible(settings):
    """Figure E.3."""
    results = {}
    for name in settings.runs:
        folder = RunFolder(name)
        coco = folder.metrics.get("coco", {}) if folder.is_run and folder.finished else {}
        if "coco_5k_i2t_pmrp_0" not in coco:
            raise InputError(
                f"--runs {name}: expected a finished run with PMRP, which needs --annotations-dir "
                "and annotations/instances_val2014.json in its --data-dir"
            )
        results[Path(name).name] = {
            side: [coco[f"coco_5k_{side}_pmrp_{zeta}"] for zeta in (0, 1, 2)]
            for side in ("i2t", "t2i")
        }
    return pcme_drawing.by_zeta(results), results


FIGURES = {
    "5": plane,
    "6": recall_by_uncertainty,
    "7": erased,
    "8": lambda settings: set_algebra.mixed_and_erased(shown(settings)),
    "D.1": isotropy,
    "E.1": samples,
    "E.3": plausible,
    "F.1": appended,
    "F.2": lambda settings: inputs.words_by_uncertainty(shown(settings)),
    "F.3": lambda settings: inputs.retrieved_by(shown(settings), "images"),
    "F.4": lambda settings: inputs.retrieved_by(shown(settings), "captions"),
}

if __name__ == "__main__":
    cli.run(main)
