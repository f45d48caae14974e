"""Captions as a sentence encoder sees them: MiniLM, as it comes with the preset of photos."""

from collections.abc import Sequence

import numpy as np

from zoo.data.text.captions import token_ids
from zoo.models.presets import from_preset

PRESET = "photos_pfe"
_BATCH = 256


def sentence_vectors(texts: Sequence[str]) -> np.ndarray:
    """Unit vectors of sentences, float32 `(len(texts), 384)`.

    Raises:
        InputError: if the preset cannot be opened.
    """
    model = from_preset(PRESET)
    backbone = model.caption_encoder.get_layer("backbone")
    parts = []
    for start in range(0, len(texts), _BATCH):
        ids = token_ids(model.tokenizer, texts[start : start + _BATCH])
        found = backbone(ids, training=False)
        parts.append(np.asarray(found["pooled"] if isinstance(found, dict) else found))
    vectors = np.concatenate(parts)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
