"""Encodes a split, or a folder of photos with captions, and evaluates it."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zoo import metrics
from zoo.data import batches
from zoo.data.loaders.own_pairs import captioned_folder
from zoo.data.records import Records
from zoo.data.records.sources import Split
from zoo.embeddings import has_uncertainty, measure_of, uncertainty
from zoo.metrics.blocks import as_similarity
from zoo.metrics.ranks import LabelRelevance
from zoo.models import DualEncoder, Tower
from zoo.similarities import get, name_of

_BINS = 10  # of uncertainty, each with a query at least
_MEASURES = {
    "log_det": "log det Σ (nats)",
    "geometric_mean": "geometric mean of σ",
    "total_variance": "tr Σ",
    "circular_variance": "circular variance",
}


@dataclass(frozen=True)
class EncodedSplit:
    """A split of a data set, encoded by a model: dicts of arrays of the N images and the M captions
    of its `Records`, their uncertainties `(N,)` and `(M,)`, or None for points, and the measure's
    name with its unit and for `zoo.embeddings.uncertainty`.

    ```python
    encoded = zoo.evaluation.encode(model, split.records, split.source)
    zoo.metrics.evaluate_retrieval(encoded.pairs(model.similarity), encoded.relevance)
    ```
    """

    records: object
    images: dict
    captions: dict
    image_uncertainty: np.ndarray | None = None
    caption_uncertainty: np.ndarray | None = None
    measure: str = ""
    measure_name: str | None = None
    _in_memory: list = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def relevance(self) -> metrics.LabelRelevance:
        return metrics.LabelRelevance(self.records.image_labels, self.records.caption_labels)

    def pairs(self, similarity: Callable) -> metrics.PairwiseSimilarity:
        """The similarity of every image with every caption, computed in blocks."""
        return metrics.PairwiseSimilarity(self.images, self.captions, similarity)

    def pairs_in_memory(self, similarity: Callable) -> Any:
        """`pairs`, computed and kept where they fit into memory; those of the first similarity stay
        for the next: retrieval and confidence read the same ones."""
        if not self._in_memory:
            self._in_memory.append((similarity, self.pairs(similarity).in_memory()))
        first, pairs = self._in_memory[0]
        return pairs if similarity is first else self.pairs(similarity).in_memory()


def encode(model: DualEncoder, records: Records, source: Any, batch_size: int = 64) -> EncodedSplit:
    """Encodes a split: `source` are its pictures or features, see `zoo.data.sources`; of captions
    four times `batch_size` at once."""
    pixels = batches.image_batches(records, source, batch_size).map(lambda batch: batch["images"])
    ids = batches.caption_batches(records, model.tokenizer, 4 * batch_size)
    images = model.tower("images").of_arrays(pixels)
    captions = model.tower("captions").of_arrays(ids.map(lambda batch: batch["captions"]))
    sides = images, captions
    measures = [measure_of(side, model.uncertainty_measure) for side in sides]
    measure = next(filter(None, measures), None)
    if measure is None:
        return EncodedSplit(records, images, captions)
    values = (
        np.asarray(uncertainty(side, measure)) if has_uncertainty(side) else None for side in sides
    )
    return EncodedSplit(records, images, captions, *values, _MEASURES[measure], measure)


def evaluate(model: DualEncoder, split: EncodedSplit, names: Sequence[str]) -> dict[str, Any]:
    """Retrieval metrics of a split, and the quality of its uncertainties.

    Args:
        model: the `DualEncoder`.
        split: an `EncodedSplit`.
        names: test-time similarities, `"own"` for the model's or names of
            `zoo.similarities.NAMES`. The first ranks for the measures of uncertainty.

    Returns:
        A dict of JSON values:

        - `retrieval`: the metrics of each similarity, by `zoo.similarities.name_of`.
        - `chance`: those of a random ranking.
        - `mean_log_sigma`: of Gaussians.
        - `uncertainty`: of a model with uncertainties, on at least ten images and captions. For
          each direction `recall_by_uncertainty` (R@1 in ten bins), `spearman_of_bins`, and
          `risk_coverage`, where the risk is 1 − R@1.
    """
    pairs = {
        name: split.pairs_in_memory(similarity)
        for name, similarity in rankings(model, names).items()
    }
    results = {
        "retrieval": {
            name: metrics.evaluate_retrieval(pair, split.relevance) for name, pair in pairs.items()
        },
        "chance": metrics.chance(split.relevance),
    }
    if "log_variance" in split.images:
        results["mean_log_sigma"] = {
            side: float(np.mean(embedding["log_variance"], dtype=np.float64)) / 2
            for side, embedding in (("images", split.images), ("captions", split.captions))
        }
    few = min(split.records.num_images, split.records.num_captions) < _BINS
    if (split.image_uncertainty is None and split.caption_uncertainty is None) or few:
        return results
    first, truth = next(iter(pairs.values())), split.relevance
    measured = {}
    if split.image_uncertainty is not None:
        measured["i2t"] = _uncertainty_quality(first, truth, split.image_uncertainty)
    if split.caption_uncertainty is not None:
        measured["t2i"] = _uncertainty_quality(
            first.transposed(), truth.transposed(), split.caption_uncertainty
        )
    return {**results, "uncertainty": measured}


def _uncertainty_quality(pair, truth, values):
    """How uncertainty predicts failure: recall in ten bins of it, their Spearman correlation, and
    the risk–coverage curve."""
    ranks = metrics.rank_queries(pair, truth)
    has_positive = ranks.has_positive
    bins = metrics.recall_in_bins(ranks, values)
    curve = metrics.risk_coverage(values[has_positive], ~ranks.hits(1)[has_positive])
    return {
        "recall_by_uncertainty": bins,
        "spearman_of_bins": metrics.spearman_of_bins(bins["recall"]),
        "risk_coverage": curve,
    }


def evaluate_folder(
    model: Any,
    folder: str | os.PathLike,
    images: str | os.PathLike | None = None,
    similarity: Any = None,
    progress: bool = False,
) -> dict[str, Any]:
    """Encodes the photos and captions of a folder and measures how they find each other.

    ```python
    zoo.evaluation.evaluate_folder("siglip2_base_patch16_224", "flickr8k/")["t2i_recall@1"]
    ```

    Args:
        model: a `DualEncoder`, or what `zoo.from_preset` takes, that reads pictures and texts; else
            an InputError.
        folder, images: see `zoo.data.captioned_folder`, as for what is raised.
        similarity: a layer; None takes the model's own.
        progress: whether to draw bars.

    Returns:
        As `zoo.metrics.evaluate_retrieval`, and `"recognised"`, one line on the folder.
    """
    towers = {side: Tower(model, side) for side in ("images", "captions")}
    towers["images"].expect("pictures")
    towers["captions"].expect("texts")
    captioned = captioned_folder(folder, images)
    encoded = (
        towers["images"].of_files(captioned.photos, progress=progress),
        towers["captions"].of_texts(captioned.captions, progress=progress),
    )
    pairs = metrics.PairwiseSimilarity(*encoded, similarity or towers["images"].model.similarity)
    relevance = metrics.LabelRelevance(range(len(captioned.photos)), captioned.caption_image)
    return {"recognised": captioned.recognised, **metrics.evaluate_retrieval(pairs, relevance)}


FIRST = 1000  # images that VSE++'s code validates on, of COCO's 5,000
MANY = 5000


def measure(
    model: DualEncoder,
    split: Split,
    similarities: Sequence[str] = ("own",),
    annotations_dir: str | os.PathLike | None = None,
    instances: Any = None,
) -> tuple[dict[str, Any], EncodedSplit]:
    """Retrieval, the quality of uncertainties, and comparisons with the split's known truth.

    Args:
        model, split: a `DualEncoder` with a tokenizer, and a `zoo.data.Split`.
        similarities: test-time similarities, see `evaluate`.
        annotations_dir: the files of ECCV Caption, for COCO's 1K, 5K, CxC and ECCV metrics.
        instances: with these COCO's instances of the test images, for PMRP; None leaves it out.

    Returns:
        `(results, EncodedSplit)`; results are those of `evaluate` with `split`, its summary, and
        where they can be measured `asp`, `coco`, `true_matches`, under `by_similarity` by each
        other one too, and `ambiguity_spearman`. Of 5,000 images without classes `first_1k` is the
        retrieval of the first 1,000, as VSE++'s code validates.
    """
    records = split.records
    encoded = encode(model, records, split.source)
    results = evaluate(model, encoded, similarities)
    results["split"] = records.summary()
    if records.semantics is not None or annotations_dir is not None or split.truth is not None:
        measured = {
            name: measure_pairs(
                encoded.pairs_in_memory(similarity), split, annotations_dir, instances
            )
            for name, similarity in rankings(model, ("own", *similarities)).items()
        }
        results |= measured.pop(name_of(model.similarity))
        if measured:
            results["by_similarity"] = measured
    if records.num_images >= MANY and records.class_names is None:
        results["first_1k"] = first_images(
            encoded.pairs_in_memory(model.similarity), records, FIRST
        )
    if split.true_matches is not None and encoded.caption_uncertainty is not None:
        uncertain = encoded.caption_uncertainty
        results["ambiguity_spearman"] = metrics.spearman(uncertain, split.true_matches)
    return results, encoded


def first_images(pairs, records, count):
    """Retrieval among the first `count` images of a split and their captions, of all pairs."""
    columns = np.flatnonzero(records.caption_image < count)
    relevance = LabelRelevance(records.image_labels[:count], records.caption_labels[columns])
    chosen = as_similarity(pairs).take(np.arange(count), columns)
    return metrics.evaluate_retrieval(chosen, relevance)


def rankings(model: DualEncoder, names: Sequence[str]) -> dict[str, Any]:
    """The similarities of some names, `"own"` for the model's, each once by its `name_of`."""
    by_title = {}
    for name in names:
        similarity = model.similarity if name == "own" else get(name, model)
        by_title.setdefault(name_of(similarity), similarity)
    return by_title


def measure_pairs(pairs, split, annotations_dir=None, instances=None):
    """What needs the similarities alone: ASP, COCO's benchmarks, and retrieval by the truth."""
    records, results, semantic = split.records, {}, None
    if records.semantics is not None:
        semantic = records.semantics.matrix()
        asp = metrics.average_semantic_precision(pairs, semantic)
        results["asp"] = {direction: 100 * value for direction, value in asp.items()}
    if annotations_dir is not None:
        results["coco"] = metrics.coco_benchmark(
            pairs,
            records.image_ids,
            records.caption_ids,
            annotations_dir,
            instances,
            semantic=semantic,
        )
    if split.truth is not None:
        results["true_matches"] = metrics.evaluate_retrieval(pairs, split.truth)
    return results
