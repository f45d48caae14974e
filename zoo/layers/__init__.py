"""Layers that turn local and global features into embeddings."""

from zoo.layers.covariance import Covariance
from zoo.layers.gaussian_head import GaussianHead
from zoo.layers.local_attention import LocalAttention
from zoo.layers.polysemous_embedding import PolysemousEmbedding
from zoo.layers.unit_length import UnitLength

__all__ = ["Covariance", "GaussianHead", "LocalAttention", "PolysemousEmbedding", "UnitLength"]
