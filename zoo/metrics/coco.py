"""The COCO table: 1K, 5K, CxC, ECCV Caption and PMRP in one call."""

import os
import pathlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from halo_search.errors import InputError
from zoo.metrics.annotations import (
    describe_ids,
    read_ids,
    read_instance_labels,
    read_matches,
    relevance_of_matches,
)
from zoo.metrics.blocks import as_similarity
from zoo.metrics.plausible_match import plausible_matches_of_coco
from zoo.metrics.ranks import LabelRelevance, rank_queries_many
from zoo.metrics.retrieval import rsum, summarise
from zoo.metrics.semantic_precision import semantic_precision_of_coco

NUM_FOLDS = 5


def coco_benchmark(
    similarity: Any,
    image_ids: ArrayLike,
    caption_ids: ArrayLike,
    annotations_dir: str | os.PathLike,
    instances: Any = None,
    semantic: Any = None,
) -> dict[str, float]:
    """Evaluates on COCO's Karpathy test split by every published truth.

    The benchmark has 5,000 images and 25,000 captions. Nine images of Karpathy's split have six
    sentences, 25,009 in all: rows and columns are chosen by id, and what the benchmark does not
    know is neither a query nor in a gallery.

    Args:
        similarity: `(images, captions)` array, `PairwiseSimilarity` or, of an ensemble,
            `MeanSimilarity`, higher is better.
        image_ids, caption_ids: COCO's ids of the rows and of the columns, in any order.
        annotations_dir: folder with the files of ECCV Caption: `coco_test_ids.npy` and
            `{original,cxc,eccv}_{image_to_caption,caption_to_image}.json`.
        instances: COCO instances JSON of these images, a path or several; None leaves PMRP out.
        semantic: `(images, captions)` semantic scores, as for `average_semantic_precision`; None
            leaves ASP out.

    Returns:
        A dict, in percent. For each truth `coco_1k`, `coco_5k`, `cxc_1k`, `cxc` and `eccv`:
        `…_i2t_recall@1`, `@5`, `@10`, `…_i2t_r_precision`, `…_i2t_map@r`, the same for `t2i`, and
        `…_rsum`; with `instances` also `coco_1k_i2t_pmrp` and so on, by ζ `coco_5k_i2t_pmrp_0` to
        `_2`, with `semantic` `coco_1k_i2t_asp`. Whole numbers say what the figures stand on:
        `…_queries`, `…_queries_without_positive`, `eccv_captions_outside_gallery`,
        `pmrp_images_left_out`, and `images_outside_benchmark` and `captions_outside_benchmark`,
        rows and columns that were left out. `coco_1k` and `cxc_1k` are means over the five folds of
        `coco_test_ids.npy`, each a gallery of its own; `cxc` and `eccv` ask their own queries
        against the whole gallery. RPC2 is `cxc_…_r_precision` of 5K images, `cxc_1k_…` of 1K.

    Raises:
        ValueError: if shapes differ, ids repeat or lack some of the annotations', or a similarity
            is NaN; `InputError` for a file.
    Reference: Chun et al., "ECCV Caption", ECCV 2022; Parekh et al., "Crisscrossed Captions",
        EACL 2021; RPC2: Pishdad et al.; PMRP: PCME (Chun et al., CVPR 2021); ASP: DAA (Li et al.,
        NeurIPS 2022), table 1.
    """
    similarity = as_similarity(similarity)
    _check_lengths(similarity.shape, image_ids, caption_ids)
    benchmark = check_coco_ids(image_ids, caption_ids, annotations_dir)
    left_out = [
        size - len(rows)
        for size, rows in zip(similarity.shape, (benchmark.rows, benchmark.columns), strict=True)
    ]
    if any(left_out):
        similarity = similarity.take(benchmark.rows, benchmark.columns)
    similarity = similarity.in_memory()
    truths = {"coco_5k": benchmark.original, "cxc": benchmark.cxc, "eccv": benchmark.eccv}
    results = _whole_gallery(similarity, truths)
    results["eccv_captions_outside_gallery"] = int(truths["eccv"][0].unreachable.sum())
    results |= _mean_of_folds(similarity, benchmark)
    if instances is not None:
        labels = read_instance_labels(instances, benchmark.image_ids)
        results |= plausible_matches_of_coco(similarity, labels, benchmark)
    if semantic is not None:
        semantic = as_similarity(semantic)
        if any(left_out):
            semantic = semantic.take(benchmark.rows, benchmark.columns)
        results |= semantic_precision_of_coco(similarity, semantic, benchmark)
    results["images_outside_benchmark"], results["captions_outside_benchmark"] = left_out
    return results


def check_coco_ids(
    image_ids: ArrayLike, caption_ids: ArrayLike, annotations_dir: str | os.PathLike
) -> "CocoBenchmark":
    """Checks by their ids, before any training, that images and captions contain COCO's benchmark.

    Returns a `CocoBenchmark`. The arguments are those of `coco_benchmark`.

    Raises:
        ValueError: if ids are no whole numbers, repeat, or lack some of the annotations', naming
            them; `InputError` for a file.
    """
    folder = pathlib.Path(annotations_dir)
    image_ids, caption_ids = _unique(image_ids, "image_ids"), _unique(caption_ids, "caption_ids")
    test_ids = read_ids(folder / "coco_test_ids.npy")
    image_of = read_matches(folder / "original_caption_to_image.json")
    missing = np.setdiff1d(test_ids, list(image_of))
    if len(missing):
        raise InputError(
            f"{folder / 'original_caption_to_image.json'}: lacks {describe_ids(missing)} of "
            "coco_test_ids.npy"
        )
    rows = _positions(
        image_ids, [image_of[caption][0] for caption in test_ids], "image_ids", folder
    )
    columns = _positions(caption_ids, test_ids, "caption_ids", folder)
    image_ids, caption_ids = image_ids[rows], caption_ids[columns]
    caption_images = np.array([image_of[caption][0] for caption in caption_ids])
    relevance = LabelRelevance(image_ids, caption_images)
    truths = {
        name: (
            relevance_of_matches(
                read_matches(folder / f"{name}_image_to_caption.json"), image_ids, caption_ids
            ),
            relevance_of_matches(
                read_matches(folder / f"{name}_caption_to_image.json"), caption_ids, image_ids
            ),
        )
        for name in ("cxc", "eccv")
    }
    fold_of = {
        caption: fold
        for fold, part in enumerate(np.array_split(test_ids, NUM_FOLDS))
        for caption in part
    }
    fold_of_column = np.array([fold_of[caption] for caption in caption_ids])
    return CocoBenchmark(
        rows,
        columns,
        image_ids,
        caption_images,
        fold_of_column,
        original=(relevance, relevance.transposed()),
        **truths,
    )


class CocoBenchmark(NamedTuple):
    """COCO's benchmark in the order of some model's images and captions."""

    rows: np.ndarray
    columns: np.ndarray
    image_ids: np.ndarray
    caption_images: np.ndarray
    fold_of_column: np.ndarray
    original: tuple
    cxc: tuple
    eccv: tuple

    def folds(self):
        """Rows and columns of each fold: a fifth of the captions, and their images."""
        for fold in range(NUM_FOLDS):
            columns = np.flatnonzero(self.fold_of_column == fold)
            yield np.flatnonzero(np.isin(self.image_ids, self.caption_images[columns])), columns


def _whole_gallery(similarity, truths):
    """Both directions by several truths, for which every row is ranked once."""
    results = {}
    for position, direction in enumerate(("i2t", "t2i")):
        scores = similarity if direction == "i2t" else similarity.transposed()
        chosen = [both[position] for both in truths.values()]
        for name, ranks in zip(truths, rank_queries_many(scores, chosen), strict=True):
            for key, value in summarise(ranks).items():
                results[f"{name}_{direction}_{key}"] = value
    for name in truths:
        results_of_name = {
            key: value for key, value in results.items() if key.startswith(f"{name}_")
        }
        results[f"{name}_rsum"] = rsum(results_of_name)
    return results


def _mean_of_folds(similarity, benchmark):
    """COCO 1K and CxC 1K: the mean of each percentage, the sum of each whole number."""
    tables = []
    for rows, columns in benchmark.folds():
        image_to_caption, caption_to_image = benchmark.cxc
        truths = {
            "coco_1k": [
                LabelRelevance(benchmark.image_ids[rows], benchmark.caption_images[columns])
            ],
            "cxc_1k": [
                image_to_caption.restricted(rows, columns),
                caption_to_image.restricted(columns, rows),
            ],
        }
        truths["coco_1k"].append(truths["coco_1k"][0].transposed())
        tables.append(_whole_gallery(similarity.take(rows, columns), truths))
    results = {}
    for key, value in tables[0].items():
        values = [table[key] for table in tables]
        results[key] = sum(values) if isinstance(value, int) else float(np.mean(values))
    return results


def _check_lengths(shape, image_ids, caption_ids):
    """Raises ValueError unless there is an id per row and per column of the similarity."""
    for name, ids, expected in (
        ("image_ids", image_ids, shape[0]),
        ("caption_ids", caption_ids, shape[1]),
    ):
        ids_shape = np.shape(ids)
        if ids is not None and ids_shape != (expected,):
            raise ValueError(
                f"`{name}` must be {expected} whole numbers, as `similarity`; received {ids_shape}"
            )


def _unique(ids, name):
    """COCO's ids as an array. Raises ValueError unless they are integers of which none repeats."""
    if ids is None:
        raise ValueError(
            f"`{name}` must be COCO's ids; received None: the loader found none, see "
            "`zoo.data.regions` for the files that bring them"
        )
    ids = np.asarray(ids)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise ValueError(
            f"`{name}` must be whole numbers, COCO's ids; received {ids.dtype} {ids.shape}"
        )
    values, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        repeated = describe_ids(values[counts > 1])
        raise ValueError(f"`{name}` must not repeat; received more than once: {repeated}")
    return ids


def _positions(ids, expected, name, folder):
    """Where the ids of the annotations are among those given, ascending."""
    expected = np.unique(expected)
    missing = np.setdiff1d(expected, ids)
    if len(missing):
        raise ValueError(
            f"`{name}` must hold the {len(expected)} ids of the annotations in {folder}; of the "
            f"{len(ids)} received it lacks {describe_ids(missing)}"
        )
    return np.flatnonzero(np.isin(ids, expected))
