"""Similarities as numbers: what an index needs of those that a search space ranks directly."""

import dataclasses

import numpy as np

from halo_search.embeddings import GAUSSIAN, POINT


@dataclasses.dataclass(frozen=True)
class Portable:
    """A similarity without Keras: slope · f(value) + shift of its space's values, where f is a
    square root if `is_root`.

    ```python
    halo_search.index.similarities.BY_NAME["cosine"]
    ```

    Attributes:
        identifier: its name, as of `zoo.similarities`.
        embeddings: the kinds of embedding it takes, as `halo_search.embeddings.kind` calls them.
        space: name of its `SearchSpace`.
        is_distance: whether the least value is the best.
    """

    identifier: str
    embeddings: tuple[str, ...]
    space: str
    is_root: bool = False
    slope: float = 1.0
    shift: float = 0.0
    is_distance: bool = False

    @classmethod
    def fitted(cls, similarity, scorer, identifier, is_distance):
        """The portable form of a similarity whose score is a straight line in the space's value or
        in its square root; None for any other."""
        values = np.linspace(0.0, 4.0, 9)
        scores = np.asarray(scorer(values), np.float64)
        for is_root in (False, True):
            shape = np.sqrt(values) if is_root else values
            slope, shift = (scores[-1] - scores[0]) / (shape[-1] - shape[0]), scores[0]
            if np.allclose(slope * shape + shift, scores, rtol=1e-6, atol=1e-6):
                line = is_root, float(slope), float(shift)
                kinds = tuple(similarity.embeddings)
                return cls(identifier, kinds, similarity.space, *line, is_distance)
        return None

    @classmethod
    def from_dict(cls, values):
        """The inverse of `dataclasses.asdict`, also after a way through JSON."""
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

    def identity(self):
        """JSON values that identify the similarity."""
        return {"portable": dataclasses.asdict(self)}

    def is_close(self, other):
        """Whether another one gives the same scores."""
        mine = self.space, self.is_root, self.is_distance
        theirs = other.space, other.is_root, other.is_distance
        lines = [self.slope, self.shift], [other.slope, other.shift]
        return mine == theirs and bool(np.allclose(*lines, rtol=1e-6, atol=1e-6))


_ANY, _GAUSSIANS = (POINT, GAUSSIAN), (GAUSSIAN,)
# As `zoo.similarities.get` makes them without a trained model: higher is better, and a scale and
# shift are those from which training begins.
BY_NAME = {
    similarity.identifier: similarity
    for similarity in (
        Portable("cosine", _ANY, "cosine"),
        Portable("euclidean", _ANY, "euclidean", is_root=True, slope=-1.0),
        Portable("squared_euclidean", _ANY, "euclidean", slope=-5.0, shift=5.0),
        Portable("csd", _GAUSSIANS, "csd", slope=-5.0, shift=5.0),
        Portable("wasserstein_2", _GAUSSIANS, "wasserstein_2", is_root=True, slope=-1.0),
        Portable("squared_wasserstein_2", _GAUSSIANS, "wasserstein_2", slope=-5.0, shift=5.0),
    )
}

# The other similarities of the library, which Keras computes.
OF_KERAS = (
    *("average_l2", "bhattacharyya", "chamfer", "elk", "jeffreys", "kl", "match_probability"),
    *("maximum_pair", "min_kl", "reverse_kl", "set_match_probability", "smooth_chamfer"),
)

# The one list of the library's similarities that need no trained model: commands refuse any other
# name before they import Keras, and `zoo.similarities` reads it.
NAMES = tuple(sorted((*BY_NAME, *OF_KERAS)))
