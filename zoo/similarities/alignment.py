"""What SGRAF does with the alignments of a pair: one step of a graph, or a gated mean."""

import keras
from keras import ops

from zoo.numerics import unit


@keras.saving.register_keras_serializable(package="halo")
class AlignmentGraph(keras.layers.Layer):
    """ReLU(W·(E·s)), E = softmax(W_q s · W_k s): each node gathers all others of its pair.

    Args:
        dim: channels of an alignment.

    Call arguments:
        alignments: `(N, M, nodes, dim)`.
        mask: bool, broadcastable to `(N, M, nodes)`, True for nodes that are there.

    Output: `(N, M, nodes, dim)`.

    Reference: SGRAF (Diao et al., AAAI 2021), equations 6 and 7.
    """

    def __init__(self, dim, **kwargs):
        super().__init__(**kwargs)
        self.dim = dim
        for name in ("query", "key", "gather"):
            layer = keras.layers.Dense(dim, dtype=self.dtype_policy, name=name)
            layer.build((None, dim))
            setattr(self, name, layer)
        self.built = True

    def call(self, alignments, mask):
        queries, keys = self.query(alignments), ops.swapaxes(self.key(alignments), -1, -2)
        scores = ops.where(ops.expand_dims(mask, -2), ops.matmul(queries, keys), -1e30)
        gathered = ops.matmul(ops.softmax(scores, axis=-1), alignments)
        return ops.relu(self.gather(gathered))

    def get_config(self):
        return {**super().get_config(), "dim": self.dim}


@keras.saving.register_keras_serializable(package="halo")
class AlignmentFiltration(keras.layers.Layer):
    """Σ_i g_i s_i of unit length, g = sigmoid(BatchNorm(w·s_i)), which sum to one.

    Args:
        dim: channels of an alignment.

    Call arguments:
        alignments: `(N, M, nodes, dim)`.
        mask: bool, broadcastable to `(N, M, nodes)`, True for nodes that are there.

    Output: `(N, M, dim)`.

    Reference: SGRAF (Diao et al., AAAI 2021), equations 8 and 9.
    """

    def __init__(self, dim, **kwargs):
        super().__init__(**kwargs)
        self.dim = dim
        self.gate = keras.layers.Dense(1, dtype=self.dtype_policy, name="gate")
        self.gate.build((None, dim))
        self.normalize = keras.layers.BatchNormalization(
            momentum=0.9, epsilon=1e-5, dtype=self.dtype_policy, name="normalize"
        )
        self.normalize.build((None, None, None, 1))
        self.built = True

    def call(self, alignments, mask, training=None):
        mask = ops.broadcast_to(mask, ops.shape(alignments)[:3])
        gates = self.normalize(self.gate(alignments), training=training, mask=mask)
        gates = ops.where(ops.expand_dims(mask, -1), ops.sigmoid(gates), 0.0)
        gates = gates / ops.maximum(ops.sum(gates, axis=2, keepdims=True), 1e-8)
        return unit(ops.sum(gates * alignments, axis=2))

    def get_config(self):
        return {**super().get_config(), "dim": self.dim}
