"""What a published family of models is: how its files are recognised, and how they are read."""

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any

import keras

from zoo.encoders.weight_arrays import WeightArrays
from zoo.errors import InputError
from zoo.models.dual_encoder import DualEncoder


@dataclasses.dataclass(frozen=True)
class Source:
    """What was given to `from_checkpoint`.

    Attributes:
        arrays: the file of weights.
        config: what `config.json` beside it says; empty without one.
        tokenizer: a layer from strings to ids, or the path of its file, or None.
        folder: where the file lies, with its tokenizer's perhaps; None for a file alone.
    """

    arrays: WeightArrays
    config: dict[str, Any]
    tokenizer: keras.layers.Layer | str | None = None
    folder: pathlib.Path | None = None


@dataclasses.dataclass(frozen=True)
class Family:
    """A published family.

    Attributes:
        name: as `from_checkpoint` takes it.
        marks: names of arrays that its files have, all of them. The first family whose marks a
            file has is the file's.
        build: from a `Source` to a `DualEncoder` with the file's weights.
    """

    name: str
    marks: tuple[str, ...]
    build: Callable[[Source], DualEncoder]

    def fits(self, names: set[str]) -> bool:
        """Whether a file with arrays of these names is of this family."""
        return all(mark in names for mark in self.marks)


def check_settings(
    config: dict[str, Any], expected: dict[str, tuple[Any, ...]], known: tuple[str, ...], where: str
) -> None:
    """Checks that a part of `config.json` describes a network that can be hosted exactly.

    Args:
        config: the part.
        expected: what settings may be; a missing one is its first value.
        known: settings with values of their own.
        where: the file and the part, for errors.

    Raises:
        InputError: if a setting has another value, or is not known: it may change the network.
    """
    for key, value in config.items():
        if key in expected and value not in expected[key]:
            may_be = " or ".join(repr(one) for one in expected[key])
            raise InputError(
                f"{where}: `{key}` must be {may_be}, which this network hosts exactly; received "
                f"{value!r}"
            )
        if key not in expected and key not in known:
            raise InputError(
                f"{where}: `{key}` = {value!r} is not known, and may change the network"
            )


def check_no_order(source: Source) -> None:
    """Checks that a file of PyTorch is not of order embeddings, which its options say alone.

    Raises:
        InputError: if it is: their absolute values and their similarity are not in the zoo.
    """
    options = source.arrays.extra.get("opt")
    if any(getattr(options, name, False) for name in ("use_abs", "order")):
        raise InputError(f"{source.arrays.path}: order embeddings are not hosted (`use_abs`)")
