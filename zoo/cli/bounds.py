"""What flags may say: numbers by their kind, names and defaults of rooms that need TensorFlow."""

import math
from typing import Any, NamedTuple

LARGEST = 2**31 - 1  # what TensorFlow counts to
# `zoo.similarities.NAMES`, which the classes themselves give.
SIMILARITIES = (
    "average_l2", "bhattacharyya", "chamfer", "cosine", "csd", "elk", "euclidean", "jeffreys",
    "kl", "match_probability", "maximum_pair", "min_kl", "reverse_kl", "set_match_probability",
    "smooth_chamfer", "squared_euclidean", "squared_wasserstein_2", "wasserstein_2",
)  # fmt: skip
# Those that an index can rank embeddings of a kind by.
RANKING = {
    "a point": ("cosine", "euclidean", "squared_euclidean"),
    "a Gaussian": (
        "average_l2", "bhattacharyya", "cosine", "csd", "elk", "euclidean", "jeffreys", "kl",
        "match_probability", "min_kl", "reverse_kl", "squared_euclidean",
        "squared_wasserstein_2", "wasserstein_2",
    ),
    "a set": (
        "average_l2", "chamfer", "match_probability", "maximum_pair", "set_match_probability",
        "smooth_chamfer",
    ),
}  # fmt: skip
# The similarity that ranks embeddings of a kind by default.
BY_KIND = {
    "a point": "cosine",
    "a Gaussian": "csd",
    "a set": "smooth_chamfer",
}
DTYPES = ("float32", "float16")  # of vectors in shards
RESAMPLES = 500  # of the bootstrap


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


# Names and the ends of names. What is in neither is a count or a rate.
_NAMES = {
    "size": (
        "dim", "_dim", "_size", "max_words", "epochs", "steps_per_epoch", "jobs", "views",
        "gradient_accumulation", "variance_blocks", "_per_class", "_per_image", "most_images",
        "num_samples", "num_classes", "num_embeddings", "num_iterations",
        "num_layers", "num_regions", "num_slots", "num_steps",
    ),
    "share": (
        "_share", "_fraction", "_dropping", "drop_rate", "dropout", "cutout", "mixup", "confusing",
        "layer_decay", "beta_2",
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


def check(flag: str, name: str, value: Any, kind: str | None = None) -> None:
    """Raises ValueError, naming the flag, unless a number, or each of several, is one that a
    setting of this name or kind may have; what is no number is fine."""
    for one in value if isinstance(value, tuple) else (value,):
        if isinstance(one, bool) or not isinstance(one, (int, float)):
            continue
        bounds = BOUNDS[kind or kind_of(name, type(one))]
        if not bounds.holds(one):
            words = f"at most {LARGEST}" if bounds.high == LARGEST < one else bounds.words
            raise ValueError(f"{flag} must be {words}; received {one}")
