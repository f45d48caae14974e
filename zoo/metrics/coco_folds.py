"""PMRP and ASP on COCO's benchmark: of all 5K images, and the mean over the five folds of 1K."""

import numpy as np

from zoo.metrics.plausible_match import plausible_match_r_precision
from zoo.metrics.semantic_precision import average_semantic_precision

THRESHOLDS = (0, 1, 2)  # the ζ of PMRP


def semantic_precision(similarity, semantic, benchmark, block_size=None):
    """ASP of both directions, `coco_5k_i2t_asp` and so on.

    Args:
        similarity, semantic: of the benchmark's images and captions.
        benchmark: a `CocoBenchmark`.
        block_size: see `coco_benchmark`.

    Reference: DAA (Li et al., NeurIPS 2022), table 1.
    """
    parts = {"coco_5k": [(similarity, semantic)]}
    folds = benchmark.folds()
    parts["coco_1k"] = (tuple(one.take(*fold) for one in (similarity, semantic)) for fold in folds)
    results = {}
    for name, pairs in parts.items():
        tables = [average_semantic_precision(*pair, block_size) for pair in pairs]
        for direction in ("i2t", "t2i"):
            mean = np.mean([table[direction] for table in tables])
            results[f"{name}_{direction}_asp"] = 100 * float(mean)
    return results


def plausible_matches(similarity, labels, benchmark, block_size=None):
    """PMRP of both directions, `coco_5k_i2t_pmrp` and so on, of 5K by ζ too.

    Args:
        similarity, benchmark, block_size: as for `semantic_precision`.
        labels: `(images, classes)`, see `read_instance_labels`.

    Reference: PCME (Chun et al., CVPR 2021), section 4.2.
    """
    row_of = {image: row for row, image in enumerate(benchmark.image_ids)}
    caption_row = np.array([row_of[image] for image in benchmark.caption_images])
    full = plausible_match_r_precision(similarity, labels, caption_row, THRESHOLDS, block_size)
    tables = []
    for rows, columns in benchmark.folds():
        place = np.full(len(benchmark.image_ids), -1)
        place[rows] = np.arange(len(rows))
        scores = similarity.take(rows, columns)
        tables.append(
            plausible_match_r_precision(
                scores, labels[rows], place[caption_row[columns]], THRESHOLDS, block_size
            )
        )
    results = {}
    for direction in ("i2t", "t2i"):
        results[f"coco_5k_{direction}_pmrp"] = 100 * full[direction]
        for threshold in THRESHOLDS:
            value = full[f"{direction}_at_{threshold}"]
            results[f"coco_5k_{direction}_pmrp_{threshold}"] = 100 * value
        values = [table[direction] for table in tables]
        results[f"coco_1k_{direction}_pmrp"] = 100 * float(np.mean(values))
    results["pmrp_images_left_out"] = full["images_left_out"]
    return results
