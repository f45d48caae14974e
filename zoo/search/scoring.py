"""One interface to what scores: a layer of `zoo.similarities` or one of its plain functions."""

import dataclasses
import importlib
import json

import numpy as np

from zoo.errors import InputError

DEFAULT_CANDIDATES = 200


@dataclasses.dataclass(frozen=True)
class Quantity:
    """A plain function of `zoo.similarities` with the attributes of its class, `owner`."""

    owner: type

    def __call__(self, images, captions):
        return self.owner.function(images, captions)

    def scorer(self):
        return self.owner.from_space

    def __getattr__(self, name):  # `embeddings`, `space`, `space_for` and `from_space`
        return getattr(object.__getattribute__(self, "owner"), name)


@dataclasses.dataclass(frozen=True)
class Portable:
    """A similarity as numbers, without Keras: slope · f(value) + shift of its space's values, where
    f is a square root if `is_root`."""

    identifier: str
    embeddings: tuple[str, ...]
    space: str
    is_root: bool
    slope: float
    shift: float
    is_distance: bool

    @classmethod
    def of(cls, similarity):
        """Of a similarity that a `SearchSpace` searches directly; None where a score is not so."""
        scorer = None if similarity.from_space is None else similarity.scorer()
        if scorer is None or similarity.space is None:
            return None
        values = np.linspace(0.0, 4.0, 9)
        found = np.asarray(scorer(values), np.float64)
        for is_root in (False, True):
            shape = np.sqrt(values) if is_root else values
            slope, shift = (found[-1] - found[0]) / (shape[-1] - shape[0]), found[0]
            if np.allclose(slope * shape + shift, found, rtol=1e-6, atol=1e-6):
                more = is_root, float(slope), float(shift), least_first(similarity)
                kinds = tuple(similarity.embeddings)
                return cls(name_of(similarity), kinds, similarity.space, *more)
        return None

    @classmethod
    def of_json(cls, values):
        """Of the `dataclasses.asdict` of one."""
        return cls(**{**values, "embeddings": tuple(values["embeddings"])})

    def space_for(self, kind):
        """As of `zoo.similarities.Similarity`; a set has no portable similarity."""
        return self.space

    def scorer(self):
        """As of `zoo.similarities.Similarity`."""
        return self.from_space

    def from_space(self, value):
        """The score of a value of the space."""
        value = np.sqrt(np.maximum(value, 0.0)) if self.is_root else value
        return self.slope * value + self.shift


def _similarities():
    return importlib.import_module("zoo.similarities")


def resolve(similarity):
    """The similarity layer or `Quantity` that a name, a function or a layer stands for; a
    ValueError of an unknown name, a TypeError of anything else."""
    if isinstance(similarity, (Quantity, Portable)):
        return similarity
    S = _similarities()
    if isinstance(similarity, str):
        return S.get(similarity)
    if isinstance(similarity, S.Similarity):
        return similarity
    by_name = importlib.import_module("zoo.similarities.by_name")
    owner = None if similarity is None else by_name.owner_of(similarity)
    if owner is not None:
        return Quantity(owner)
    raise TypeError(
        "`similarity` must be a layer of zoo.similarities, the function of one of them, or a name "
        f"of {S.names()}; received {similarity!r}"
    )


def least_first(similarity):
    """Whether the best score is the least: of distances. A layer's best is the greatest."""
    if isinstance(similarity, Quantity):
        return similarity.owner.is_distance
    return isinstance(similarity, Portable) and similarity.is_distance


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
    if isinstance(similarity, Portable):
        return {"portable": dataclasses.asdict(similarity)}
    import keras  # here: an index answers without it

    if isinstance(similarity, Quantity):
        return {"function": name_of(similarity)}
    return {
        "layer": keras.saving.serialize_keras_object(similarity),
        "weights": [np.asarray(weight).tolist() for weight in similarity.weights],
    }


def identity(similarity):
    """What tells two similarities apart: the class, its settings and its learned scalars."""
    return identity_of(to_json(similarity))


def identity_of(value):
    """`identity` of what `to_json` made."""
    if "layer" in value:
        layer, weights = dict(value["layer"]), np.float32(value["weights"]).tolist()
        config = {key: own for key, own in layer["config"].items() if key != "name"}
        value = {"layer": {**layer, "config": config}, "weights": weights}  # Keras counts names
    return json.dumps(value, sort_keys=True)


def described(description, similarity, has_portable):
    """The description of an index with its similarity, as it is saved."""
    if isinstance(similarity, Portable):  # of which the saved one stays
        return {"portable": dataclasses.asdict(similarity), **description}
    portable = Portable.of(similarity) if has_portable else None
    return {
        **description,
        "similarity": to_json(similarity),
        "portable": None if portable is None else dataclasses.asdict(portable),
    }


def from_json(value):
    """The inverse of `to_json`; a KeyError, TypeError or ValueError of what is none."""
    if "portable" in value:
        return Portable.of_json(value["portable"])
    if "function" in value:
        return resolve(getattr(_similarities(), str(value["function"]), None))
    import keras

    _similarities()  # which registers them
    layer = keras.saving.deserialize_keras_object(value["layer"])
    layer.set_weights([np.asarray(weight, np.float32) for weight in value["weights"]])
    return resolve(layer)


def saved(path, description, wanted=None):
    """The similarity to score a saved index with: its own, or `wanted` of the same class (as of
    `resolve`, or the class `Portable`); an InputError if there is none."""
    try:
        if wanted is Portable:
            return Portable.of_json(description["portable"])
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
