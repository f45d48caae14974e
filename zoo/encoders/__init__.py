"""Encoders: images and captions to features, and to embeddings."""

from zoo.encoders.convolutional import CONVOLUTIONAL, convolutional
from zoo.encoders.gru import gru
from zoo.encoders.towers import gaussian_caption_encoder, gaussian_image_encoder

__all__ = [
    "CONVOLUTIONAL",
    "convolutional",
    "gaussian_caption_encoder",
    "gaussian_image_encoder",
    "gru",
]
