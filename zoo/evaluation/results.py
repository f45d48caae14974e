"""All measurements of a model on a split, as metrics.json holds them."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from zoo import metrics
from zoo.data.records.sources import Split
from zoo.evaluation.retrieval import EncodedSplit, encode, evaluate, spearman_of_matches
from zoo.metrics.blocks import as_similarity
from zoo.metrics.relevance import LabelRelevance
from zoo.models import DualEncoder
from zoo.similarities import get, name_of

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
        model: a `DualEncoder` with a tokenizer.
        split: a `zoo.data.Split`.
        similarities: test-time similarities, see `evaluate`.
        annotations_dir: the files of ECCV Caption, for COCO's 1K, 5K, CxC and ECCV metrics.
        instances: with these COCO's instances of the test images, for PMRP; None leaves it out.

    Returns:
        `(results, EncodedSplit)`; results are JSON values, those of `evaluate` with `split`, its
        summary, and where they can be measured `asp`, `coco`, `true_matches`, under
        `by_similarity` by each other one too, and `ambiguity_spearman`. Of 5,000 images without
        classes `first_1k` is the retrieval of the first 1,000, as VSE++'s code validates.
    """
    records = split.records
    encoded = encode(model, records, split.source)
    results = evaluate(model, encoded, similarities)
    results["split"] = records.summary()
    if records.semantics is not None or annotations_dir is not None or split.truth is not None:
        own, *others = rankings(model, similarities)
        results |= measure_pairs(encoded.pairs(own).kept(), split, annotations_dir, instances)
        if others:
            results["by_similarity"] = {
                name_of(other): measure_pairs(
                    encoded.pairs(other).kept(), split, annotations_dir, instances
                )
                for other in others
            }
    if records.num_images >= MANY and records.class_names is None:
        results["first_1k"] = first_images(encoded.kept_pairs(model.similarity), records, FIRST)
    if split.true_matches is not None and encoded.caption_uncertainty is not None:
        results["ambiguity_spearman"] = spearman_of_matches(encoded, split.true_matches)
    return results, encoded


def first_images(pairs, records, count):
    """Retrieval among the first `count` images of a split and their captions, of all pairs."""
    columns = np.flatnonzero(records.caption_image < count)
    relevance = LabelRelevance(records.image_labels[:count], records.caption_labels[columns])
    chosen = as_similarity(pairs).take(np.arange(count), columns)
    return metrics.evaluate_retrieval(chosen, relevance)


def rankings(model: DualEncoder, names: Sequence[str]) -> list[Any]:
    """The model's own similarity and then those of the names that are others, each once."""
    found = {name_of(model.similarity): model.similarity}
    for name in names:
        similarity = model.similarity if name == "own" else get(name, model)
        found.setdefault(name_of(similarity), similarity)
    return list(found.values())


def measure_pairs(pairs, split, annotations_dir=None, instances=None):
    """What needs the similarities alone: ASP, COCO's benchmarks, and retrieval by the truth. Pairs
    are `(images, captions)`, a matrix or a `PairwiseSimilarity`; the others as of `measure`."""
    records, results, semantic = split.records, {}, None
    if records.semantics is not None:
        semantic = records.semantics.matrix()
        found = metrics.average_semantic_precision(pairs, semantic)
        results["asp"] = {direction: 100 * value for direction, value in found.items()}
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
