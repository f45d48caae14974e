"""Data sets by name: a run's `config.json` names a loader and its options, and `open` opens them.

A new data set is one loader function and one line in `LOADERS` (`zoo.data.by_name`), and its test.
"""

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

from zoo.data.by_name import LOADERS
from zoo.data.records.semantics import semantics
from zoo.data.sources.split import Split
from zoo.errors import InputError
from zoo.files.cache import cache_folder

SPLITS = ("train", "validation", "test")


def open(description: Mapping[str, Any], split: str = "test") -> Split:
    """Opens one split of the data that a description names.

    ```python
    zoo.data.open({"loader": "cub", "root": "CUB_200_2011", "image_size": 224}, "train")
    ```

    Args:
        description: a dict of JSON values: `loader`, one of `LOADERS`, and its options. Every
            loader takes `held_out`, the split that `"test"` means (`"val"` to choose settings),
            and `skip_bad`, whether to leave out and count what is bad. Loaders of pictures take
            `image_size`, `resize` and `crop_fraction`, see `pictures`. With `semantics`,
            `{"variant": "cider", "splits": ["train"]}`, the records of these splits know what
            their captions have in common, see `zoo.data.records.semantics`.
        split: `"train"`, `"validation"` or `"test"`.

    Returns:
        A `Split`.

    Raises:
        ValueError: if `split` is unknown.
        InputError: if the description names no loader or unknown options, or the data are not
            there or not what they have to be.
    """
    if split not in SPLITS:
        raise ValueError(f"`split` must be one of {SPLITS}; received {split!r}")
    options = dict(description)
    name = options.pop("loader", None)
    if name not in LOADERS:
        raise InputError(f"data: `loader` must be one of {', '.join(LOADERS)}; received {name!r}")
    meaning = options.pop("semantics", None) or {}
    load = LOADERS[name]
    try:
        inspect.signature(load).bind(split, **options)
    except TypeError as error:
        known = ", ".join(list(inspect.signature(load).parameters)[1:])
        raise InputError(f"data of loader {name!r}: {error}; its options are {known}") from error
    opened = load(split, **options)
    if split in meaning.get("splits", ()):
        found = semantics(opened.records, meaning["variant"], cache_folder("semantics"))
        opened = opened.with_records(dataclasses.replace(opened.records, semantics=found))
    return opened
