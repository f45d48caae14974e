"""Toy scenes: several Toy Birds in one picture, in the layouts of COCO, Flickr30K and SCAN.

`generate` writes a set; `zoo.data.coco.load`, `flickr30k.load` and `regions.load` read it as they
read the real ones. `true_matches` knows how ambiguous each caption is.
"""

from zoo.data.toy.scenes.truth import SceneTruth, read_truth, true_matches, truth_matrix
from zoo.data.toy.scenes.writing import generate

__all__ = ["SceneTruth", "generate", "read_truth", "true_matches", "truth_matrix"]
