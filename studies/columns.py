"""Columns as the papers print them: by which truth, over which gallery, in which metric.

COCO's 1K is the mean over five folds of 1,000 images, its 5K the whole test split, and both papers
and runs differ by tens of points between them. So a column of COCO says which one it is, and a
column of the whole split is empty where a run has COCO's benchmark.
"""

import numpy as np

from studies.seed_table import DIRECTIONS, Column

RECALLS = ("recall@1", "recall@5", "recall@10")
SHORT = {"recall@1": "R@1", "recall@5": "R@5", "recall@10": "R@10"}
SHORT |= {"r_precision": "R-P", "map@r": "mAP@R", "pmrp": "PMRP", "asp": "ASP"}
TRUTHS = {"eccv": "ECCV", "cxc": "CxC", "cxc_1k": "CxC 1K", "coco_1k": "1K", "coco_5k": "5K"}
SMALLER = ("coco",)  # results of a run whose paper prints no number of its whole split


def of_coco(truth, metric):
    """Both directions of COCO's benchmark by one of `TRUTHS`."""
    values = tuple(
        lambda metrics, side=side: metrics["coco"][f"{truth}_{side}_{metric}"]
        for side in DIRECTIONS
    )
    return Column(f"{TRUTHS[truth]} {SHORT[metric]} i2t / t2i", values)


def mean_of_coco(truth, metric):
    """The mean of both directions, as PCME++ prints it."""

    def value(metrics):
        return np.mean([metrics["coco"][f"{truth}_{side}_{metric}"] for side in DIRECTIONS])

    return Column(f"{TRUTHS[truth]} {SHORT[metric]}", (value,))


def rsum_of_coco(truth):
    """RSUM by one of `TRUTHS`."""
    return Column(f"{TRUTHS[truth]} RSUM", (lambda metrics: metrics["coco"][f"{truth}_rsum"],))


def whole_split(metric, smaller=SMALLER):
    """Both directions over all images of the split by each run's own similarity."""

    def value(direction):
        return lambda metrics: _of_whole(metrics, smaller)[f"{direction}_{metric}"]

    return Column(f"{SHORT[metric]} i2t / t2i", tuple(value(side) for side in DIRECTIONS))


def whole_rsum(smaller=SMALLER):
    """RSUM over all images of the split, see `whole_split`."""
    return Column("RSUM", (lambda metrics: _of_whole(metrics, smaller)["rsum"],))


def _of_whole(metrics, smaller):
    if any(name in metrics for name in smaller):
        raise KeyError("the paper's gallery is a smaller one")
    return next(iter(metrics["retrieval"].values()))


def first_1k(metric):
    """Both directions over the first 1,000 images, as VSE++'s code validates on COCO."""
    values = tuple(
        lambda metrics, side=side: metrics["first_1k"][f"{side}_{metric}"] for side in DIRECTIONS
    )
    return Column(f"first 1K {SHORT[metric]} i2t / t2i", values)


def first_1k_rsum():
    """RSUM over the first 1,000 images."""
    return Column("first 1K RSUM", (lambda metrics: metrics["first_1k"]["rsum"],))


def log_sigma():
    """E[log σ] over dimensions and what is evaluated (PCME, table D.1)."""
    sides = ("images", "captions")
    values = tuple(lambda metrics, side=side: metrics["mean_log_sigma"][side] for side in sides)
    return Column("E[log σ] images / captions", values, ".2f")


def log_variance():
    """log of the mean circular variance of sets (DivE, table 3). Sets of one element have none."""

    def value(side):
        def of(metrics):
            log_variances = metrics["sets"][side]["log_circular_variance"]
            if log_variances is None:
                raise KeyError(side)
            return log_variances

        return of

    return Column("log(Var.) images / captions", (value("images"), value("captions")), ".2f")


CUB = (whole_split("r_precision"), whole_split("recall@1"))  # PCME, tables 2, E.2, E.3
PCME_COCO = tuple(  # tables 3, E.4, E.5
    of_coco(truth, metric) for truth in ("coco_1k", "coco_5k") for metric in ("pmrp", *RECALLS)
)
VALIDATION = (*map(first_1k, RECALLS), first_1k_rsum())  # Pishdad et al., tables 5 and 6
STABILITY = (rsum_of_coco("coco_1k"), rsum_of_coco("coco_5k"), whole_rsum())  # tables 7 and 8
DAA = tuple(of_coco("coco_5k", metric) for metric in ("pmrp", "recall@1", "asp"))  # table 4
PRINTED_OF_COCO = (  # PCME++, tables 1 to 5, C.2 to C.4, C.7 to C.9
    ("eccv", "map@r"),
    ("eccv", "r_precision"),
    ("eccv", "recall@1"),
    ("cxc", "recall@1"),
    ("coco_1k", "recall@1"),
    ("coco_5k", "recall@1"),
)
PCMEPP = (*(mean_of_coco(*pair) for pair in PRINTED_OF_COCO), rsum_of_coco("coco_1k"))
PCMEPP_SIDES = tuple(of_coco(*pair) for pair in PRINTED_OF_COCO)  # tables C.7 and C.8
PCMEPP_MORE = tuple(  # tables C.5 and C.6
    of_coco(truth, metric) for truth in ("cxc", "coco_1k", "coco_5k") for metric in RECALLS[1:]
)
DIVE = (log_variance(), whole_rsum())  # tables 3 and 4
