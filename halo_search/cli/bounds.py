"""What the number of a flag may be, by its kind; looked at before anything is imported for it."""

import math
from typing import Any, NamedTuple

LARGEST = 2**31 - 1  # what TensorFlow counts to


class Bounds(NamedTuple):
    """An interval of finite numbers, described by `words` in errors; `above` leaves out `low`
    itself."""

    low: float
    high: float
    words: str
    above: bool = False

    def holds(self, value: float) -> bool:
        """Whether a number is in it. NaN is in none."""
        if not math.isfinite(value) or not value <= self.high:
            return False
        return value > self.low if self.above else value >= self.low


INFINITE = float("inf")


BOUNDS = {
    "size": Bounds(1, LARGEST, "a whole number of at least 1"),
    "count": Bounds(0, LARGEST, "a whole number of at least 0"),
    "share": Bounds(0, 1, "a share from 0 to 1"),
    "rate": Bounds(0, INFINITE, "a finite number of at least 0"),
    "positive": Bounds(0, INFINITE, "a finite number above 0", above=True),
    "signed": Bounds(-INFINITE, INFINITE, "a finite number"),
}


_NAMES = {
    "size": (
        "dim", "_dim", "_size", "max_words", "epochs", "steps_per_epoch", "jobs", "views",
        "variance_blocks", "_per_class", "_per_image", "most_images",
        "num_samples", "num_classes", "num_embeddings", "num_iterations",
        "num_layers", "num_regions", "num_slots", "num_steps",
    ),
    "share": (
        "_share", "_fraction", "_dropping", "_deleting", "drop_rate", "dropout", "cutout", "mixup",
        "confusing", "layer_decay", "beta_2",
    ),
    "positive": (
        "scale", "temperature", "_temperature", "epsilon", "alpha", "mixing_beta", "_variance",
        "clip_norm", "_sigma_range",
    ),
    "signed": ("shift", "_log_variance", "_bias"),
}  # fmt: skip


def kind_of(name: str, kind: type) -> str:
    """The kind of a setting, a key of `BOUNDS`, by its name, such as `"batch_size"`, and whether it
    is `int` or `float`."""
    for known in ("signed", "size", "share", "positive"):  # `_log_variance` before `_variance`
        for word in _NAMES[known]:
            if name == word or (word.startswith("_") and name.endswith(word)):
                return known
    return "count" if kind is int else "rate"


def check(flag: str, value: Any, kind: str) -> None:
    """Raises ValueError, naming the flag, unless a number, or each of several, is one of a kind;
    what is no number is fine."""
    for number in value if isinstance(value, tuple) else (value,):
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            continue
        bounds = BOUNDS[kind]
        if not bounds.holds(number):
            words = f"at most {LARGEST}" if bounds.high == LARGEST < number else bounds.words
            raise ValueError(f"{flag} must be {words}; received {number}")
