"""One interface to what scores: a layer of `zoo.similarities` or one of its plain functions."""

import dataclasses
import json

import keras
import numpy as np

from zoo import similarities as S
from zoo.errors import InputError

DEFAULT_CANDIDATES = 200


@dataclasses.dataclass(frozen=True)
class Quantity:
    """Wraps a plain function of `zoo.similarities` with the attributes of its class.

    Attributes:
        owner: a subclass of `Similarity` with a `function`.
    """

    owner: type

    def __call__(self, images, captions):
        return self.owner.function(images, captions)

    @property
    def embeddings(self):
        return self.owner.embeddings

    @property
    def space(self):
        return self.owner.space

    def space_for(self, kind):
        return self.owner.space_for(kind)

    @property
    def from_space(self):
        return self.owner.from_space

    def scorer(self):
        return self.owner.from_space


def resolve(similarity):
    """The similarity layer or `Quantity` that a name, a function or a layer stands for.

    Raises:
        ValueError: if a name is unknown.
        TypeError: if it is neither a layer, a function nor a name.
    """
    if isinstance(similarity, str):
        return S.get(similarity)
    if isinstance(similarity, (S.Similarity, Quantity)):
        return similarity
    owner = None if similarity is None else S.owner_of(similarity)
    if owner is not None:
        return Quantity(owner)
    raise TypeError(
        "`similarity` must be a layer of zoo.similarities, the function of one of them, or a name "
        f"of {S.names()}; received {similarity!r}"
    )


def least_first(similarity):
    """Whether the best score is the least: of distances. A layer's best is the greatest."""
    return isinstance(similarity, Quantity) and similarity.owner.is_distance


def sign(similarity):
    """What a score is multiplied by for higher to be better: −1 of distances, else 1."""
    return -1.0 if least_first(similarity) else 1.0


def name_of(similarity):
    """What to call it in messages."""
    if isinstance(similarity, Quantity):
        return similarity.owner.function.__name__
    return similarity.identifier or type(similarity).__name__


def to_json(similarity):
    """A similarity with its learned scalars as JSON values."""
    if isinstance(similarity, Quantity):
        return {"function": name_of(similarity)}
    return {
        "layer": keras.saving.serialize_keras_object(similarity),
        "weights": [np.asarray(weight).tolist() for weight in similarity.weights],
    }


def identity(similarity):
    """What tells two similarities apart: the class, its settings and its learned scalars."""
    value = to_json(similarity)
    if "layer" in value:
        value["layer"]["config"].pop("name")  # Keras counts instances
        value["weights"] = np.float32(value["weights"]).tolist()
    return json.dumps(value, sort_keys=True)


def from_json(value):
    """The inverse of `to_json`.

    Raises:
        KeyError, TypeError, ValueError: if it is nothing that `to_json` made.
    """
    if "function" in value:
        return resolve(getattr(S, str(value["function"]), None))
    layer = keras.saving.deserialize_keras_object(value["layer"])
    layer.set_weights([np.asarray(weight, np.float32) for weight in value["weights"]])
    return resolve(layer)


def saved(path, description, wanted=None):
    """The similarity to score a saved index with: its own, or another of the same class.

    Args:
        path: of the description, for errors.
        description: of the index, JSON values.
        wanted: what `resolve` takes, or None for the saved one.

    Raises:
        InputError: if there is no such similarity, or the index was built for another.
    """
    try:
        own = from_json(description["similarity"])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path}: its similarity: {reason}") from error
    similarity = own if wanted is None else resolve(wanted)
    if name_of(similarity) != name_of(own):
        raise InputError(
            f"{path.parent}: the index was built for the similarity {name_of(own)}, not for "
            f"{name_of(similarity)}"
        )
    return similarity
