"""Layers that turn local and global features into embeddings."""

from zoo.layers.brute_force_retrieval import BruteForceRetrieval
from zoo.layers.covariance import Covariance
from zoo.layers.directional_head import DirectionalHead
from zoo.layers.distribution import Distribution
from zoo.layers.gaussian_head import GaussianHead
from zoo.layers.generalized_pooling import GeneralizedPooling
from zoo.layers.global_attention import GlobalAttention
from zoo.layers.image_preprocessing import ImagePreprocessing
from zoo.layers.laplace_projection import LaplaceProjection
from zoo.layers.learned_tokens import LearnedTokens
from zoo.layers.local_attention import LocalAttention
from zoo.layers.mean_pooling import MeanPooling
from zoo.layers.picture_scaling import PictureScaling
from zoo.layers.polysemous_embedding import PolysemousEmbedding
from zoo.layers.pooled_gaussian_head import PooledGaussianHead
from zoo.layers.region_reasoning import RegionGraph, RegionReasoning
from zoo.layers.sentence_gru import SentenceGRU
from zoo.layers.set_prediction import SetPrediction
from zoo.layers.slot_attention import SlotAttention
from zoo.layers.transformer_block import TransformerBlock
from zoo.layers.uncertainty_token import UncertaintyToken
from zoo.layers.unit_length import UnitLength

__all__ = [
    "BruteForceRetrieval",
    "Covariance",
    "DirectionalHead",
    "Distribution",
    "GaussianHead",
    "GeneralizedPooling",
    "GlobalAttention",
    "ImagePreprocessing",
    "LaplaceProjection",
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
    "UncertaintyToken",
    "UnitLength",
]
