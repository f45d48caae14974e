"""PyTorch's weight layouts to Keras', for parity with the official codes' outputs."""

import numpy as np


def dense(weights, name):
    """`[kernel]` or `[kernel, bias]` of the linear (or width-one convolution) layer `name`."""
    kernel = weights[f"w__{name}__weight"]
    arrays = [kernel.reshape(kernel.shape[:2]).T]
    bias = weights.get(f"w__{name}__bias")
    return arrays if bias is None else [*arrays, bias]


def norm(weights, name):
    """`[gamma, beta]` of a LayerNorm; a BatchNorm's two running statistics come after them."""
    keys = ("weight", "bias", "running_mean", "running_var")
    return [weights[f"w__{name}__{k}"] for k in keys if f"w__{name}__{k}" in weights]


def gru(weights, name, reverse=False):
    """`[kernel, recurrent_kernel, bias]` of a Keras GRU with `reset_after=True`.

    PyTorch orders the gates reset, update, new; Keras update, reset, new.
    """
    suffix = "_l0_reverse" if reverse else "_l0"

    def load(part):
        reset, update, new = np.split(weights[f"w__{name}__{part}{suffix}"], 3)
        return np.concatenate([update, reset, new])

    return [load("weight_ih").T, load("weight_hh").T, np.stack([load("bias_ih"), load("bias_hh")])]


def set_local_attention(layer, weights, name):
    """Gives a `LocalAttention` the weights of the official module `name`."""
    layer.hidden.set_weights(dense(weights, f"{name}__w_1"))
    layer.score.set_weights(dense(weights, f"{name}__w_2"))


def set_pie_net(layer, weights, prefix=""):
    """Gives a `PolysemousEmbedding` the weights of the official PIE-Net."""
    set_local_attention(layer.attention, weights, f"{prefix}attention")
    layer.branch.set_weights(dense(weights, f"{prefix}fc"))
    layer.normalize.set_weights(norm(weights, f"{prefix}layer_norm"))
