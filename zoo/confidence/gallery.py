"""Which gallery a calibration was made on."""

import dataclasses
import hashlib

import numpy as np

from zoo.confidence.moments import GalleryMoments


@dataclasses.dataclass(frozen=True)
class GalleryIdentity:
    """A gallery by its hash, its size and a few of its moments.

    ```python
    vectors = np.random.default_rng(0).normal(size=(100, 8)).astype("float32")
    zoo.confidence.GalleryIdentity.of(vectors).size  # 100
    ```

    Attributes:
        digest: SHA-256 of the vectors, in hexadecimal.
        size: number of items.
        summary: `GalleryMoments.summary()`, to say how another gallery differs.
    """

    digest: str
    size: int
    summary: dict

    @classmethod
    def of(cls, vectors, moments=None):
        """The identity of the vectors `(items, dim)` of a search space.

        Args:
            vectors: float32 is what is hashed.
            moments: their `GalleryMoments`, where they are there already.

        Raises:
            ValueError: if the vectors are no finite matrix, or the moments are of another size.
        """
        vectors = np.ascontiguousarray(vectors, np.float32)
        moments = GalleryMoments.of(vectors) if moments is None else moments
        if moments.count != len(vectors):
            raise ValueError(
                f"`moments` must be of the {len(vectors)} vectors; received those of "
                f"{moments.count}"
            )
        digest = hashlib.sha256(repr(vectors.shape).encode())
        digest.update(vectors.data)
        return cls(digest.hexdigest(), len(vectors), moments.summary())

    def difference(self, other):
        """How another gallery differs, in words, or None if it is the same."""
        if self.digest == other.digest:
            return None
        if self.size != other.size:
            return f"it has {other.size:,} items, not {self.size:,}"
        if self.summary.get("dim") != other.summary.get("dim"):
            return f"its vectors have {other.summary.get('dim')} dimensions"
        return f"its {self.size:,} items are others"
