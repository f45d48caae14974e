"""The mean of several similarities."""

import keras

from zoo.similarities.base import Similarity


@keras.saving.register_keras_serializable(package="halo")
class AverageSimilarity(Similarity):
    """The mean of similarities of the same embeddings, such as SGRAF's of its two parts.

    ```python
    images, captions = np.array([[0.0, 1.0]]), np.array([[0.6, 0.8], [1.0, 0.0]])
    parts = [zoo.similarities.Cosine(), zoo.similarities.EuclideanDistance()]
    zoo.similarities.AverageSimilarity(parts)(images, captions)  # (1, 2)
    ```

    Args:
        parts: similarity layers, at least one, of one unit.

    Call arguments:
        images, captions: what all of them take.

    Output: `(N, M)` float32.

    Raises:
        ValueError: if there are no parts.

    Reference: SGRAF (Diao et al., AAAI 2021), section 4.2, of models that were trained apart.
    """

    identifier = "average"
    needs_model = True

    def __init__(self, parts, **kwargs):
        super().__init__(**kwargs)
        self.parts = list(parts)
        if not self.parts:
            raise ValueError("`parts` must hold at least one similarity; received none")
        kinds = (set(getattr(part, "embeddings", ())) for part in self.parts)
        self.embeddings = tuple(sorted(set.intersection(*kinds)))

    def call(self, images, captions, training=None):
        total = sum(part(images, captions, training=training) for part in self.parts)
        return total / len(self.parts)

    def get_config(self):
        parts = [keras.saving.serialize_keras_object(part) for part in self.parts]
        return {**super().get_config(), "parts": parts}

    @classmethod
    def from_config(cls, config):
        parts = [keras.saving.deserialize_keras_object(part) for part in config["parts"]]
        return cls(**{**config, "parts": parts})
