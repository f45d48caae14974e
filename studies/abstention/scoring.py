"""What a file of scores is worth: abstention, risk, absence and calibration, with intervals."""

import csv
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from studies.abstention.questions import ANSWERABLE, KINDS, PARAPHRASED, REMOVED, UNKNOWN
from zoo.confidence import abstention_auc, expected_calibration_error
from zoo.errors import InputError

DRAWS = 500
# Name in a table: whether more is better.
MEASURES = {
    "nAUC": True,
    "nAUC paraphrased": True,
    "AURC": False,
    "AUROC removed": True,
    "AUROC unknown words": True,
    "calibration error": False,
}


def read_scores(path, count):
    """`(confidence, presence)` of a file, `(count,)` each.

    Args:
        path: a `.npy` of `(R,)` or `(R, 2)`, or a CSV with the columns `confidence` and, where
            another number says whether anything matches, `presence`.
        count: how many rows the benchmark has.

    Raises:
        InputError: if it cannot be read, has another number of rows, or a number is not finite.
    """
    path = Path(path)
    try:
        if path.suffix == ".npy":
            columns = np.load(path, allow_pickle=False).astype(float)
            columns = columns[:, None] if columns.ndim == 1 else columns
        else:
            with open(path, encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
            names = [name for name in ("confidence", "presence") if rows and name in rows[0]]
            columns = np.array([[float(row[name]) for name in names] for row in rows])
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path}: cannot be read as scores: {error}") from error
    if columns.ndim != 2 or len(columns) != count or columns.shape[1] not in (1, 2):
        raise InputError(
            f"{path}: expected {count} rows of `confidence`, or of `confidence` and `presence`; "
            f"found {columns.shape}"
        )
    if not np.isfinite(columns).all():
        raise InputError(f"{path}: expected finite numbers; found NaN or infinities")
    return columns[:, 0], columns[:, -1]


def write_scores(path, confidence, presence=None):
    """Writes what `read_scores` reads."""
    columns = {"confidence": confidence} | ({} if presence is None else {"presence": presence})
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(
            [f"{value:.6g}" for value in row] for row in zip(*columns.values(), strict=True)
        )


def measured(truth, confidence, presence):
    """The value of each of `MEASURES`; the calibration error is NaN of what is no probability.

    Args:
        truth: dict with `kind`, `right` and `group`, `(R,)` each.
        confidence: `(R,)`, that the first answer is right.
        presence: `(R,)`, that anything matches.
    """
    kind = _numbers(truth["kind"])
    rows = {name: np.flatnonzero(kind == number) for number, name in enumerate(KINDS)}
    asked, said = rows[ANSWERABLE], rows[PARAPHRASED]
    right = truth["right"]
    is_probability = confidence.min() >= 0 and confidence.max() <= 1
    return {
        "nAUC": abstention_auc(confidence[asked], right[asked]),
        "nAUC paraphrased": abstention_auc(confidence[said], right[said]),
        "AURC": area_of_risk(confidence[asked], right[asked]),
        "AUROC removed": auroc(presence[asked], presence[rows[REMOVED]]),
        "AUROC unknown words": auroc(presence[asked], presence[rows[UNKNOWN]]),
        "calibration error": expected_calibration_error(confidence[asked], right[asked])
        if is_probability
        else float("nan"),
    }


def with_intervals(truth, confidence, presence, draws=DRAWS, seed=0):
    """`{measure: (value, low, high)}`, of 95 % of bootstrap draws of groups."""
    truth = {**truth, "kind": _numbers(truth["kind"])}  # strings would take most of the time
    value = measured(truth, confidence, presence)
    found = [
        measured({name: truth[name][rows] for name in truth}, confidence[rows], presence[rows])
        for rows in resamples(truth["group"], draws, seed)
    ]
    ends = {
        name: np.nanquantile([one[name] for one in found], (0.025, 0.975))
        if np.isfinite(value[name])
        else (np.nan, np.nan)
        for name in value
    }
    return {name: (value[name], *(float(end) for end in ends[name])) for name in value}


def differences(truth, first, second, draws=DRAWS, seed=0):
    """As `with_intervals`, of one file less another over the same draws."""
    truth = {**truth, "kind": _numbers(truth["kind"])}
    value = _less(measured(truth, *first), measured(truth, *second))
    found = []
    for rows in resamples(truth["group"], draws, seed):
        part = {name: truth[name][rows] for name in truth}
        found.append(
            _less(
                measured(part, *(one[rows] for one in first)),
                measured(part, *(one[rows] for one in second)),
            )
        )
    return {
        name: (value[name], *np.nanquantile([one[name] for one in found], (0.025, 0.975)))
        for name in value
        if np.isfinite(value[name])
    }


def resamples(group, draws, seed=0):
    """Rows of as many groups as there are, drawn with replacement."""
    numbers = np.unique(group, return_inverse=True)[1]
    order = np.argsort(numbers, kind="stable")
    starts = np.searchsorted(numbers[order], np.arange(numbers.max() + 2))
    rng = np.random.default_rng(seed)
    for _ in range(draws):
        drawn = rng.integers(numbers.max() + 1, size=numbers.max() + 1)
        yield np.concatenate([order[starts[one] : starts[one + 1]] for one in drawn])


def auroc(of_true, of_false):
    """The probability that a true one has the greater number, ties counted half."""
    ranks = rankdata(np.concatenate([of_true, of_false]))[: len(of_true)]
    above = ranks.sum() - len(of_true) * (len(of_true) + 1) / 2
    return float(above / (len(of_true) * len(of_false)))


def area_of_risk(confidence, right):
    """The mean share of wrong answers among the surest 1, 2 … Q: AURC; ties as on average."""
    order = np.argsort(-confidence, kind="stable")
    sorted_confidence, wrong = confidence[order], 1.0 - right[order]
    # Of equal confidences each stands for the mean of them.
    numbers = np.unique(-sorted_confidence, return_inverse=True)[1]
    wrong = (np.bincount(numbers, wrong) / np.bincount(numbers))[numbers]
    return float(np.mean(np.cumsum(wrong) / np.arange(1, len(wrong) + 1)))


def _less(first, second):
    return {name: first[name] - second[name] for name in first}


def _numbers(kind):
    """The places of kinds in `KINDS`; numbers stay."""
    if kind.dtype.kind in "iu":
        return kind
    return np.select([kind == name for name in KINDS], np.arange(len(KINDS)), -1)
