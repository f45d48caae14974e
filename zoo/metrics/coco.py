"""The COCO table: 1K, 5K, CxC, ECCV Caption and PMRP in one call."""

import pathlib

import numpy as np

from zoo.metrics.annotations import (
    describe_ids,
    read_ids,
    read_instance_labels,
    read_matches,
    relevance_of_matches,
)
from zoo.metrics.blocks import as_similarity
from zoo.metrics.plausible_match import plausible_match_r_precision
from zoo.metrics.ranks import rank_queries_many
from zoo.metrics.relevance import LabelRelevance
from zoo.metrics.retrieval import evaluate_retrieval, rsum, summarise

NUM_FOLDS = 5


def coco_benchmark(
    similarity, image_ids, caption_ids, annotations_dir, instances=None, block_size=None
):
    """Evaluates on COCO's Karpathy test split by every published truth.

    Args:
        similarity: `(images, captions)` array or `PairwiseSimilarity`, higher is better.
        image_ids: `(images,)` COCO image ids of the rows, in any order.
        caption_ids: `(captions,)` COCO caption ids of the columns, in any order.
        annotations_dir: folder with the files of ECCV Caption: `coco_test_ids.npy` and
            `{original,cxc,eccv}_{image_to_caption,caption_to_image}.json`.
        instances: COCO instances JSON of these images, a path or several; None leaves PMRP out.
        block_size: queries a block; None for as many as fit into 64 MiB.

    Returns:
        A dict, in percent. For each truth `coco_1k`, `coco_5k`, `cxc` and `eccv`:
        `…_i2t_recall@1`, `@5`, `@10`, `…_i2t_r_precision`, `…_i2t_map@r`, the same for `t2i`, and
        `…_rsum`; with `instances` also `coco_1k_i2t_pmrp` and so on. Whole numbers say what the
        figures stand on: `…_queries`, `…_queries_without_positive`,
        `eccv_captions_outside_gallery`, `pmrp_images_left_out`.
        `coco_1k` is the mean over the five folds of `coco_test_ids.npy`; `cxc` and `eccv` ask
        their own queries against the whole gallery. RPC2 is `cxc_i2t_r_precision` and
        `cxc_t2i_r_precision`.

    Raises:
        ValueError: if shapes differ, ids repeat or are not those of the annotations, or a
            similarity is NaN; `InputError` for a file.

    Reference: Chun et al., "ECCV Caption", ECCV 2022; Parekh et al., "Crisscrossed Captions",
        EACL 2021; RPC2: Pishdad et al.; PMRP: PCME (Chun et al., CVPR 2021).
    """
    similarity = as_similarity(similarity)
    folder = pathlib.Path(annotations_dir)
    image_ids = _unique(image_ids, "image_ids", similarity.shape[0])
    caption_ids = _unique(caption_ids, "caption_ids", similarity.shape[1])
    test_ids = read_ids(folder / "coco_test_ids.npy")
    image_of = read_matches(folder / "original_caption_to_image.json")
    image_of = {caption: images[0] for caption, images in image_of.items()}
    _same_ids(caption_ids, test_ids, "caption_ids", folder)
    _same_ids(image_ids, [image_of[caption] for caption in test_ids], "image_ids", folder)
    caption_images = np.array([image_of[caption] for caption in caption_ids])

    similarity = similarity.kept()
    results = {}
    truths = {"coco_5k": [LabelRelevance(image_ids, caption_images)] * 2}
    truths["coco_5k"][1] = truths["coco_5k"][0].transposed()
    for name in ("cxc", "eccv"):
        truths[name] = [
            relevance_of_matches(
                read_matches(folder / f"{name}_image_to_caption.json"), image_ids, caption_ids
            ),
            relevance_of_matches(
                read_matches(folder / f"{name}_caption_to_image.json"), caption_ids, image_ids
            ),
        ]
    for position, direction in enumerate(("i2t", "t2i")):
        scores = similarity if direction == "i2t" else similarity.transposed()
        chosen = [both[position] for both in truths.values()]
        for name, ranks in zip(truths, rank_queries_many(scores, chosen, block_size), strict=True):
            for key, value in summarise(ranks).items():
                results[f"{name}_{direction}_{key}"] = value
    for name in truths:
        results[f"{name}_rsum"] = rsum(
            {key: value for key, value in results.items() if key.startswith(f"{name}_")}
        )
    results["eccv_captions_outside_gallery"] = int(truths["eccv"][0].unreachable.sum())

    folds = list(_folds(test_ids, image_ids, caption_ids, caption_images))
    tables = [
        evaluate_retrieval(
            similarity.take(rows, columns),
            LabelRelevance(image_ids[rows], caption_images[columns]),
            block_size=block_size,
        )
        for rows, columns in folds
    ]
    results |= {f"coco_1k_{key}": value for key, value in _mean(tables).items()}
    if instances is not None:
        labels = read_instance_labels(instances, image_ids)
        results |= _plausible_matches(
            similarity, labels, image_ids, caption_images, folds, block_size
        )
    return results


def _plausible_matches(similarity, labels, image_ids, caption_images, folds, block_size):
    row_of = {image: row for row, image in enumerate(image_ids)}
    caption_row = np.array([row_of[image] for image in caption_images])
    full = plausible_match_r_precision(similarity, labels, caption_row, block_size=block_size)
    tables = []
    for rows, columns in folds:
        place = np.full(len(image_ids), -1)
        place[rows] = np.arange(len(rows))
        scores = similarity.take(rows, columns)
        tables.append(
            plausible_match_r_precision(
                scores, labels[rows], place[caption_row[columns]], block_size=block_size
            )
        )
    results = {}
    for direction in ("i2t", "t2i"):
        results[f"coco_5k_{direction}_pmrp"] = 100 * full[direction]
        values = [table[direction] for table in tables]
        results[f"coco_1k_{direction}_pmrp"] = 100 * float(np.mean(values))
    results["pmrp_images_left_out"] = full["images_left_out"]
    return results


def _folds(test_ids, image_ids, caption_ids, caption_images):
    """Rows and columns of the five folds: consecutive fifths of the captions, and their images."""
    fold_of = {
        caption: fold
        for fold, part in enumerate(np.array_split(test_ids, NUM_FOLDS))
        for caption in part
    }
    fold_of_column = np.array([fold_of[caption] for caption in caption_ids])
    for fold in range(NUM_FOLDS):
        columns = np.flatnonzero(fold_of_column == fold)
        rows = np.flatnonzero(np.isin(image_ids, caption_images[columns]))
        yield rows, columns


def _mean(tables):
    """The mean of each percentage, the sum of each whole number."""
    results = {}
    for key, value in tables[0].items():
        values = [table[key] for table in tables]
        results[key] = sum(values) if isinstance(value, int) else float(np.mean(values))
    return results


def _unique(ids, name, expected):
    ids = np.asarray(ids)
    if ids.shape != (expected,) or ids.dtype.kind not in "iu":
        raise ValueError(
            f"`{name}` must be {expected} whole numbers, as `similarity`; "
            f"received {ids.dtype} {ids.shape}"
        )
    values, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        repeated = describe_ids(values[counts > 1])
        raise ValueError(f"`{name}` must not repeat; received more than once: {repeated}")
    return ids


def _same_ids(ids, expected, name, folder):
    expected = np.unique(expected)
    for wrong, what in (
        (np.setdiff1d(ids, expected), "holds ids that they lack"),
        (np.setdiff1d(expected, ids), "lacks some of them"),
    ):
        if len(wrong):
            raise ValueError(
                f"`{name}` must be the {len(expected)} ids of the annotations in {folder}; "
                f"it {what}: {describe_ids(wrong)}"
            )
