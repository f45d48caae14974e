"""Random arrays by the names and in the layouts of a PyTorch state dict."""

import numpy as np


class TorchArrays(dict):
    """A state dict that is filled layer by layer, from a seed."""

    def __init__(self, seed=0):
        super().__init__()
        self.rng = np.random.default_rng(seed)

    def convolution(self, name, outputs, inputs, size):
        """A kernel without bias."""
        scale = np.sqrt(2 / (inputs * size * size))
        self[f"{name}.weight"] = self.rng.normal(0, scale, (outputs, inputs, size, size))

    def normalization(self, name, channels):
        """A BatchNorm with its running statistics and its counter."""
        self[f"{name}.weight"] = self.rng.uniform(0.5, 1.5, channels)
        self[f"{name}.bias"] = self.rng.normal(0, 0.3, channels)
        self[f"{name}.running_mean"] = self.rng.normal(0, 0.3, channels)
        self[f"{name}.running_var"] = self.rng.uniform(0.5, 1.5, channels)
        self[f"{name}.num_batches_tracked"] = np.array(7)

    def float32(self):
        """All arrays as a file has them."""
        return {name: np.asarray(array, np.float32) for name, array in self.items()}
