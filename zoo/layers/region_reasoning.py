"""VSRN's reasoning over image regions: residual graph convolutions, then a GRU over regions."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Tensor
from zoo.embeddings.layer import Layer
from zoo.layers.masking import unit_length
from zoo.layers.sentence_gru import SentenceGRU


@keras.saving.register_keras_serializable(package="halo")
class RegionGraph(Layer):
    """One residual graph convolution: v + BatchNorm(W·(R·g(v))), R = θ(v)·φ(v)ᵀ / N.

    ```python
    zoo.layers.RegionGraph()(np.ones((2, 5, 8), "float32"))  # (2, 5, 8)
    ```

    θ, φ, g and W are linear; N is the number of regions of the image. The BatchNorm starts at
    zero scale, the layer as the identity. Its statistics leave padding out.
    Output: `(batch, num_regions, dim)`, zero at padding, of regions of the same shape and a mask,
        bool `(batch, num_regions)`, True for regions.
    Reference: VSRN (Li et al., ICCV 2019), section 3.2, equation 4.
    """

    def build(self, regions_shape):
        dim = regions_shape[-1]
        for name in ("theta", "phi", "g", "w"):
            layer = keras.layers.Dense(dim, dtype=self.dtype_policy, name=name)
            layer.build(regions_shape)
            setattr(self, name, layer)
        self.normalize = keras.layers.BatchNormalization(
            momentum=0.9,
            epsilon=1e-5,
            gamma_initializer="zeros",
            dtype=self.dtype_policy,
            name="normalize",
        )
        self.normalize.build(regions_shape)

    def call(
        self, regions: Tensor, mask: Tensor | None = None, training: bool | None = None
    ) -> Tensor:
        values = self.g(regions)
        count = ops.shape(regions)[1]
        if mask is not None:
            mask = ops.cast(mask, "bool")
            present = ops.cast(ops.expand_dims(mask, -1), regions.dtype)
            values = values * present
            count = ops.maximum(ops.sum(present, axis=1, keepdims=True), 1)
        affinity = ops.matmul(self.theta(regions), ops.swapaxes(self.phi(regions), 1, 2))
        gathered = ops.matmul(affinity / ops.cast(count, affinity.dtype), values)
        moved = self.normalize(self.w(gathered), training=training, mask=mask)
        return regions + moved if mask is None else (regions + moved) * present

    def compute_mask(self, regions, previous_mask):
        return previous_mask


@keras.saving.register_keras_serializable(package="halo")
class RegionReasoning(Layer):
    """Regions related by `num_layers` graph convolutions and read one after the other by a GRU.

    ```python
    zoo.layers.RegionReasoning(num_layers=2)(np.ones((2, 5, 8), "float32"))
    ```

    Args:
        num_layers: graph convolutions, each with its own weights.
        over_regions: whether the related regions get unit length over regions, channel by channel,
            as released, not over channels.
    Output: `(regions, image)` of projected regions `(batch, num_regions, dim)` and their mask, True
        for regions, which come before the padding: the related regions of unit length, float32 and
        zero at padding, and the GRU's last state `(batch, dim)`, not normalised.
    Reference: VSRN (Li et al., ICCV 2019), sections 3.2 and 3.3.
    Released code differs: `over_regions`.
    """

    def __init__(self, num_layers: int = 4, over_regions: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        if num_layers < 0:
            raise ValueError(f"`num_layers` must not be negative; received {num_layers}")
        self.num_layers, self.over_regions = num_layers, over_regions
        self.graphs = [
            RegionGraph(dtype=self.dtype_policy, name=f"graph_{i}") for i in range(num_layers)
        ]

    def build(self, regions_shape):
        for graph in self.graphs:
            graph.build(regions_shape)
        self.reader = SentenceGRU(
            regions_shape[-1], bidirectional=False, dtype=self.dtype_policy, name="reader"
        )
        self.reader.build(regions_shape)

    def call(
        self, regions: Tensor, mask: Tensor | None = None, training: bool | None = None
    ) -> tuple[Tensor, Tensor]:
        for graph in self.graphs:
            regions = graph(regions, mask=mask, training=training)
        regions = unit_over_regions(regions) if self.over_regions else unit_length(regions)
        _, image = self.reader(regions, mask=mask)
        return regions, image

    def compute_output_spec(self, regions, mask=None, training=None):
        # Said, since to trace the network takes most of the time in which a model is built.
        batch, _, dim = regions.shape
        return (
            keras.KerasTensor(regions.shape, "float32"),
            keras.KerasTensor((batch, dim), self.compute_dtype),
        )

    def compute_mask(self, regions, previous_mask):
        return None if previous_mask is None else (previous_mask, None)


def unit_over_regions(regions: Tensor) -> Tensor:
    """Regions `(batch, num_regions, dim)` whose channels have unit length over the regions."""
    return ops.swapaxes(unit_length(ops.swapaxes(regions, 1, 2)), 1, 2)
