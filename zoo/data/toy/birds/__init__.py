"""Toy Birds: drawn birds with known attributes, in the layout of CUB-200-2011 with captions.

`generate` writes a set, `zoo.data.cub.load` reads it as it reads the real one. What the real one
cannot give is the truth about ambiguity: `true_matches` does, and `oracle` what can be reached.
"""

from zoo.data.toy.birds.truth import Truth, oracle, read_truth, true_matches
from zoo.data.toy.birds.writing import draw_again, generate

__all__ = ["Truth", "draw_again", "generate", "oracle", "read_truth", "true_matches"]
