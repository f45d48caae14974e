"""Which gallery a calibration was made on."""

import dataclasses

import numpy as np

from zoo.confidence.moments import GalleryMoments

_SAME = 1e-4  # relative difference of two sums over the same items, in any order


@dataclasses.dataclass(frozen=True)
class GalleryIdentity:
    """A gallery by its size and a few of its moments, whatever the order of its items.

    ```python
    vectors = np.random.default_rng(0).normal(size=(100, 8)).astype("float32")
    zoo.confidence.GalleryIdentity.of(vectors).size  # 100
    ```

    Attributes:
        size: number of items.
        summary: `GalleryMoments.summary()`; empty where items have no vectors.
    """

    size: int
    summary: dict

    @classmethod
    def of(cls, vectors, moments=None):
        """The identity of the vectors `(items, dim)` of a search space.

        Args:
            vectors: float32 is what is looked at.
            moments: their `GalleryMoments`, where they are there already.

        Raises:
            ValueError: if the vectors are no finite matrix, or the moments are of another size.
        """
        vectors = np.asarray(vectors, np.float32)
        moments = GalleryMoments.of(vectors) if moments is None else moments
        if moments.count != len(vectors):
            raise ValueError(
                f"`moments` must be of the {len(vectors)} vectors; received those of "
                f"{moments.count}"
            )
        return cls(len(vectors), moments.summary())

    @classmethod
    def of_index(cls, index):
        """The identity of the gallery of an index."""
        moments = index.vector_moments
        return cls(len(index), {} if moments is None else moments.summary())

    def difference(self, other):
        """How another gallery differs, in words, or None if it is the same."""
        if self.size != other.size:
            return f"it has {other.size:,} items, not {self.size:,}"
        if self.summary.get("dim") != other.summary.get("dim"):
            return f"its vectors have {other.summary.get('dim')} dimensions"
        scale = abs(self.summary.get("mean_squared_norm", 0.0))
        for name, value in self.summary.items():
            # Squared lengths compare with squared lengths; all are of the same data.
            least = scale if "squared" in name or "variance" in name else scale**0.5
            if abs(other.summary.get(name, np.inf) - value) > _SAME * max(abs(value), least):
                return f"its {self.size:,} items are others"
        return None
