"""One interface to what scores: numbers alone, a layer of `zoo.similarities`, or its function."""

import dataclasses
import os

import numpy as np

from halo_search.errors import InputError
from halo_search.index.similarities import BY_NAME, Portable

DEFAULT_CANDIDATES = 200


@dataclasses.dataclass(frozen=True)
class Quantity:
    """A plain function of `zoo.similarities` with the attributes of its class, `owner`."""

    owner: type

    def __call__(self, images, captions):
        return self.owner.function(images, captions)

    def scorer(self):
        return self.owner.from_space

    def identity(self):
        """JSON values that identify the similarity."""
        return {"function": name_of(self)}

    def __getattr__(self, name):  # `embeddings`, `space`, `space_for` and `from_space`
        return getattr(object.__getattribute__(self, "owner"), name)


def resolve(similarity):
    """The similarity that a name, a function or a layer stands for; a ValueError of an unknown
    name, a TypeError of anything else, a MissingPackageError of what only Keras computes."""
    if isinstance(similarity, str):
        return BY_NAME.get(similarity) or _keras().similarity(similarity)
    if hasattr(similarity, "space_for"):
        return similarity
    owner = getattr(similarity, "owner", None)  # of a function of `zoo.similarities`
    if owner is not None:
        return Quantity(owner)
    raise TypeError(
        "`similarity` must be a layer of zoo.similarities, the function of one of them, or a name "
        f"such as {', '.join(BY_NAME)}; received {similarity!r}"
    )


def sign(similarity):
    """What a score is multiplied by for higher to be better: −1 of distances, else 1, as of every
    layer."""
    is_quantity = isinstance(similarity, (Quantity, Portable))
    return -1.0 if is_quantity and similarity.is_distance else 1.0


def finite(similarity, scores):
    """Scores in place with float32's largest numbers for what is beyond them, as a divergence of a
    point and a Gaussian far away is; a score that is no number is the worst."""
    most = float(np.finfo(np.float32).max)
    return np.nan_to_num(
        scores, copy=False, nan=-sign(similarity) * most, posinf=most, neginf=-most
    )


def name_of(similarity):
    """What to call it in messages."""
    if isinstance(similarity, Quantity):
        return similarity.owner.function.__name__
    return similarity.identifier or type(similarity).__name__


def portable(similarity):
    """A similarity that a `SearchSpace` searches directly, as numbers; None of any other."""
    if isinstance(similarity, Portable):
        return similarity
    scorer = None if similarity.from_space is None else similarity.scorer()
    if scorer is None or similarity.space is None:
        return None
    return Portable.fitted(similarity, scorer, name_of(similarity), sign(similarity) < 0)


def rank_alike(similarity, other):
    """Whether two similarities give the same scores: by their numbers, else by what they are."""
    numbers, others = portable(similarity), portable(other)
    if numbers is not None and others is not None:
        return numbers.is_close(others)
    return similarity is other or (numbers is others and similarity.identity() == other.identity())


def described(description, similarity, has_portable):
    """The description of an index with its similarity, as it is saved."""
    numbers = portable(similarity) if has_portable else None
    as_json = None if numbers is None else dataclasses.asdict(numbers)
    described = {**description, "portable": as_json}
    if isinstance(similarity, Portable):  # what a layer was stays beside its numbers
        return described
    return {**described, "similarity": similarity.identity()}


def saved(path, description, wanted=None):
    """The similarity to score a saved index with: its own as numbers, or `wanted` (as of
    `resolve`), which must be of the same name; what has no numbers is opened by Keras. Raises
    InputError if there is none."""
    try:
        if description.get("portable") is not None:
            stored = Portable.from_dict(description["portable"])
        else:
            stored = resolve(_keras().stored_similarity(description["similarity"]))
    except (KeyError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path}: its similarity: {reason}") from error
    similarity = stored if wanted is None else resolve(wanted)
    if name_of(similarity) != name_of(stored):
        raise InputError(
            f"{os.path.dirname(path)}: the index was built for the similarity {name_of(stored)}, "
            f"not for {name_of(similarity)}"
        )
    return similarity


def _keras():
    """The door to Keras, opened for a similarity that is not plain numbers."""
    from halo_search.towers import keras_models  # towers know of indexes, not the reverse

    return keras_models()
