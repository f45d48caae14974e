"""Layers that turn local and global features into embeddings."""

from zoo.layers import compat  # noqa: F401  (first: it says which backend is missing)
from zoo.layers.attention import GlobalAttention, LocalAttention, PolysemousEmbedding
from zoo.layers.gaussian_head import Covariance, GaussianHead
from zoo.layers.image_preprocessing import ImagePreprocessing, PictureScaling
from zoo.layers.masking import UnitLength
from zoo.layers.pooled_gaussian_head import PooledGaussianHead
from zoo.layers.pooling import GeneralizedPooling, MeanPooling
from zoo.layers.region_reasoning import RegionGraph, RegionReasoning
from zoo.layers.sentence_gru import SentenceGRU
from zoo.layers.slot_attention import SetPrediction, SlotAttention
from zoo.layers.transformer import LearnedTokens, TransformerBlock, WordPieces

__all__ = [
    "Covariance",
    "GaussianHead",
    "GeneralizedPooling",
    "GlobalAttention",
    "ImagePreprocessing",
    "LearnedTokens",
    "LocalAttention",
    "MeanPooling",
    "PictureScaling",
    "PolysemousEmbedding",
    "PooledGaussianHead",
    "RegionGraph",
    "RegionReasoning",
    "SentenceGRU",
    "SetPrediction",
    "SlotAttention",
    "TransformerBlock",
    "UnitLength",
    "WordPieces",
]
