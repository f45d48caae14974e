"""What the recipes share: their flags, the splits they train and test on, and the way of a run.

A recipe adds its paper's settings, a builder call and its phases of training.
"""

from zoo.recipe.ensemble import ensemble
from zoo.recipe.main import evaluate, run, show
from zoo.recipe.settings import RetrievalSettings
from zoo.recipe.splits import (
    Split,
    Splits,
    coco_pictures,
    cub_pictures,
    few_classes,
    flickr30k_pictures,
    region_features,
    table_of_pairs,
)
from zoo.recipe.truth import against_truth

__all__ = [
    "RetrievalSettings",
    "Split",
    "Splits",
    "against_truth",
    "coco_pictures",
    "cub_pictures",
    "ensemble",
    "evaluate",
    "few_classes",
    "flickr30k_pictures",
    "region_features",
    "run",
    "show",
    "table_of_pairs",
]
