"""What flags may say, looked at before Keras is imported, so that a mistyped name costs no time:
numbers by their kind, names and defaults of rooms that need TensorFlow, models and paths.

A name that passes may still be wrong: whatever opens it says so.
"""

import argparse
import difflib
import math
import os
from pathlib import Path
from typing import Any, NamedTuple

from zoo.errors import InputError

PRESETS = Path(__file__).parent.parent / "presets"
_HUB = "clip", "siglip"  # one is in each name of KerasHub's dual encoders

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


def _token(value):
    if not value or not value.isascii() or not value.isprintable() or " " in value:
        raise argparse.ArgumentTypeError("expected ASCII letters, digits or signs without spaces")
    return value


# `--token` of a server; an argument is seen by who lists processes, a variable is not.
TOKEN = {
    "type": _token,
    "default": os.environ.get("HALO_TOKEN"),
    "help": "word that clients have to send (default: the environment variable HALO_TOKEN)",
}


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


def check_path(value: Any, said: str) -> None:
    """Raises InputError, with a sentence, unless a local path exists. None, patterns and addresses
    pass."""
    text = str(value)
    is_elsewhere = value is None or "://" in text or any(sign in text for sign in "*?[")
    if not is_elsewhere and not Path(text).expanduser().exists():
        raise InputError(said)


def check_source(source: Any, captions: bool = False, column: str | None = None) -> None:
    """Raises InputError where a local source, which is there, holds nothing to encode."""
    from zoo.files import decoding, folders, tables, vector_files  # here: a question has no source

    path, side = vector_files.located(source)[0], "captions" if captions else "images"
    if not path.exists():  # an address
        return
    if path.suffix in vector_files.SUFFIXES:
        vector_files.read_vectors(source, side)
    elif path.suffix in tables.SEPARATORS:
        row = next(tables.read_table(path, [column or side[:-1]]), None)
        if row is None:
            raise InputError(f"{source}: has no rows")
    elif path.is_dir() and not captions:
        found = (one for one in path.rglob("*") if one.suffix.lower() in decoding.SUFFIXES)
        if next(found, None) is None:
            raise InputError(folders.no_image(source, folders.pictures_in(path)[1]))


def check_model(name: Any) -> None:
    """Raises InputError for a name that is neither a path, a preset nor on a hub."""
    text = str(name)
    presets = _presets()
    known = text in presets or "://" in text or any(word in text.lower() for word in _HUB)
    if name is None or known or Path(text).expanduser().exists():
        return
    close = difflib.get_close_matches(text, presets, 1)
    raise InputError(
        f"no such model: {text!r}; a model must be one of the presets {', '.join(presets)}; a "
        "KerasHub name such as 'siglip2_base_patch16_224'; a handle that begins with hf:// or "
        "kaggle://; or a file or folder" + (f"; did you mean {close[0]!r}?" if close else "")
    )


def check_run(name: Any, said: str | None = None) -> None:
    """Raises InputError, with a sentence, for what is neither a preset nor a path."""
    if str(name) not in _presets():
        check_path(name, said or f"no such run folder: {name}")


def check_index(folder: Any) -> None:
    """Raises InputError unless a folder holds what `halo search build` wrote."""
    path = Path(folder) / "search.json"
    if not path.exists():
        raise InputError(f"{path}: there is no such file; expected what `build` wrote")


def absolute(name: Any) -> str:
    """A model's name; its path from the root where it is a path, which holds in every folder."""
    path = Path(str(name)).expanduser()
    is_path = str(name) not in _presets() and path.exists()
    return str(path.resolve()) if is_path else str(name)


def _presets():
    return sorted(path.name for path in PRESETS.iterdir() if path.is_dir())
