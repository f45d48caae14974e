"""Plausible Match R-Precision: items with nearly the same objects count as positives."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zoo.metrics.blocks import as_similarity
from zoo.metrics.ranks import HammingRelevance, rank_queries_many

THRESHOLDS = (0, 1, 2)  # the ζ of PMRP


def plausible_match_r_precision(
    similarity: Any,
    image_labels: ArrayLike,
    caption_image: ArrayLike,
    thresholds: Sequence[int] = (0, 1, 2),
) -> dict[str, float]:
    """PMRP: R-Precision whose positives are the items with at most ζ differing labels.

    ```python
    labels = np.array([[1, 0, 0], [0, 1, 1]], bool)
    plausible_match_r_precision(np.eye(2), labels, [0, 1], thresholds=(0,))["i2t"]  # 1.0
    ```

    Args:
        similarity: `(images, captions)` array or `PairwiseSimilarity`, higher is better.
        image_labels: `(images, classes)` booleans or 0 and 1, for instance of
            `read_instance_labels`. A caption has those of its image.
        caption_image: `(captions,)` position of each caption's image.
        thresholds: the ζ over which R-Precision is averaged.

    Returns:
        A dict: `i2t` and `t2i`, fractions, the means of `i2t_at_0`, `i2t_at_1` and so on by ζ;
        `images_left_out` and `captions_left_out`, whole numbers: images without any label, and
        their captions, are neither queries nor gallery.

    Raises:
        ValueError: if shapes differ, a label is not 0 or 1, a position is no image, no image has a
            label, or a similarity is NaN.
    Reference: PCME (Chun et al., CVPR 2021) section 4.1.
    """
    similarity = as_similarity(similarity)
    image_labels, caption_image = _checked(similarity.shape, image_labels, caption_image)
    if not len(thresholds):
        raise ValueError("`thresholds` must hold at least one; received none")
    labelled = image_labels.any(axis=1)
    images, captions = np.flatnonzero(labelled), np.flatnonzero(labelled[caption_image])
    if not len(images) or not len(captions):
        raise ValueError("`image_labels` must label at least one image with a caption")
    if len(images) < similarity.shape[0] or len(captions) < similarity.shape[1]:
        similarity = similarity.take(images, captions)
    relevances = [
        HammingRelevance(image_labels, images, caption_image[captions], limit)
        for limit in thresholds
    ]
    results = {}
    for direction, scores, truths in (
        ("i2t", similarity, relevances),
        ("t2i", similarity.transposed(), [truth.transposed() for truth in relevances]),
    ):
        ranks = rank_queries_many(scores, truths)
        values = [float(rank.mean(rank.r_precision)) for rank in ranks]
        results[direction] = float(np.mean(values))
        for limit, value in zip(thresholds, values, strict=True):
            results[f"{direction}_at_{limit}"] = value
    results["images_left_out"] = len(labelled) - len(images)
    results["captions_left_out"] = len(caption_image) - len(captions)
    return results


def plausible_matches_of_coco(similarity, labels, benchmark):
    """PMRP of both directions on a `CocoBenchmark`, `coco_5k_i2t_pmrp` and so on, of 5K by ζ
    too."""
    row_of = {image: row for row, image in enumerate(benchmark.image_ids)}
    caption_row = np.array([row_of[image] for image in benchmark.caption_images])
    full = plausible_match_r_precision(similarity, labels, caption_row, THRESHOLDS)
    tables = []
    for rows, columns in benchmark.folds():
        place = np.full(len(benchmark.image_ids), -1)
        place[rows] = np.arange(len(rows))
        owners = place[caption_row[columns]]
        scores = similarity.take(rows, columns)
        tables.append(plausible_match_r_precision(scores, labels[rows], owners, THRESHOLDS))
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


def _checked(shape, image_labels, caption_image):
    """`(image_labels, caption_image)` as bool (images, classes) and int (captions,). Raises
    ValueError for other shapes and values."""
    image_labels, caption_image = np.asarray(image_labels), np.asarray(caption_image)
    if image_labels.ndim != 2 or len(image_labels) != shape[0]:
        raise ValueError(
            f"`image_labels` must be (images, classes) with {shape[0]} images, as `similarity`; "
            f"received {image_labels.shape}"
        )
    if not ((image_labels == 0) | (image_labels == 1)).all():
        raise ValueError("`image_labels` must be boolean; received values other than 0 and 1")
    if caption_image.shape != (shape[1],) or caption_image.dtype.kind not in "iu":
        raise ValueError(
            f"`caption_image` must be {shape[1]} whole numbers, one a column of `similarity`; "
            f"received {caption_image.dtype} {caption_image.shape}"
        )
    outside = caption_image[(caption_image < 0) | (caption_image >= shape[0])]
    if len(outside):
        raise ValueError(
            f"`caption_image` must be positions of images, 0 to {shape[0] - 1}; "
            f"received {outside[0]}"
        )
    return image_labels.astype(bool), caption_image
