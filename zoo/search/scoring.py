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
                more = is_root, float(slope), float(shift), sign(similarity) < 0
                kinds = tuple(similarity.embeddings)
                return cls(name_of(similarity), kinds, similarity.space, *more)
        return None

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


def sign(similarity):
    """What a score is multiplied by for higher to be better: −1 of distances, else 1, as of every
    layer."""
    is_quantity = isinstance(similarity, (Quantity, Portable))
    return -1.0 if is_quantity and similarity.is_distance else 1.0


def name_of(similarity):
    """What to call it in messages."""
    if isinstance(similarity, Quantity):
        return similarity.owner.function.__name__
    return similarity.identifier or type(similarity).__name__


def identity(similarity):
    """A similarity with its learned scalars as JSON values, which tell two of them apart."""
    if isinstance(similarity, Portable):
        return {"portable": dataclasses.asdict(similarity)}
    import keras  # here: an index answers without it

    if isinstance(similarity, Quantity):
        return {"function": name_of(similarity)}
    layer = keras.saving.serialize_keras_object(similarity)
    del layer["config"]["name"]  # Keras counts names, and this tells two similarities apart
    weights = [np.asarray(weight).tolist() for weight in similarity.weights]
    return json.loads(json.dumps({"layer": layer, "weights": weights}))


def described(description, similarity, has_portable):
    """The description of an index with its similarity, as it is saved."""
    if isinstance(similarity, Portable):  # of which the saved one stays
        return {"portable": dataclasses.asdict(similarity), **description}
    portable = Portable.of(similarity) if has_portable else None
    return {
        **description,
        "similarity": identity(similarity),
        "portable": None if portable is None else dataclasses.asdict(portable),
    }


def saved(path, description, wanted=None):
    """The similarity to score a saved index with: its own, or `wanted` of the same class (as of
    `resolve`, or the class `Portable`); an InputError if there is none."""
    try:
        value = description if wanted is Portable else description["similarity"]
        if "portable" in value:
            kinds = tuple(value["portable"]["embeddings"])
            own = Portable(**{**value["portable"], "embeddings": kinds})
        elif "function" in value:
            own = resolve(getattr(_similarities(), value["function"], None))
        else:
            import keras  # here: an index answers without it

            _similarities()  # which registers them
            own = resolve(keras.saving.deserialize_keras_object(value["layer"]))
            own.set_weights([np.asarray(weight, np.float32) for weight in value["weights"]])
    except (KeyError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path}: its similarity: {reason}") from error
    similarity = own if wanted in (None, Portable) else resolve(wanted)
    if name_of(similarity) != name_of(own):
        raise InputError(
            f"{path.parent}: the index was built for the similarity {name_of(own)}, not for "
            f"{name_of(similarity)}"
        )
    return similarity
