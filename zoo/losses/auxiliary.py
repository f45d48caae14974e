"""The contract of the terms that join a loss: they read embeddings, not their similarities."""

from typing import Any

import keras

from zoo.embeddings import as_embedding


class Auxiliary(keras.layers.Layer):
    """Base of the auxiliary terms: two batches of embeddings in, one unweighted scalar out.

    ```python
    class MeanLength(zoo.losses.Auxiliary):
        def call(self, images, captions):
            return keras.ops.mean(images["mean"] ** 2)

    points = {"mean": np.ones((2, 4), "float32")}
    MeanLength(0.1, "length")(points, points)  # unweighted: 1.0
    ```

    `DualEncoder` multiplies by `weight`, adds to the loss and logs the scalar under `name`.
    They are layers so that random state (`Uniformity` on samples) is saved with the model.

    Args:
        weight: factor of the term in the loss.
        name: under which the term is logged.

    Call arguments:
        images: N embeddings of images, a dict of tensors or what `encode_images` returned.
        captions: M embeddings of captions, in the same form.

    Output: a float32 scalar, whatever the global precision.

    A term is also called with what it `reads` of the batch, by name: `"ids"`, the captions' token
    ids `(M, length)`; `"matches"`, `"logits"` and `"semantic"`, each `(N, M)`.
    """

    reads: tuple[str, ...] = ()

    def __init__(self, weight: float, name: str, **kwargs: Any):
        kwargs.setdefault("dtype", "float32")
        super().__init__(name=name, **kwargs)
        self.weight = float(weight)
        self.built = True

    def __call__(self, images, captions, **kwargs):
        # Distributions are not tensors, so Keras must not see them as layer inputs.
        images, captions = as_embedding(images, "images"), as_embedding(captions, "captions")
        return super().__call__(images, captions, **kwargs)

    def compute_output_spec(self, *args, **kwargs):
        return keras.KerasTensor((), dtype="float32")

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "weight": self.weight}
