"""Search: exact and approximate nearest neighbours of points, Gaussians and sets."""

from zoo.search.index import Index
from zoo.search.tuning import tune
from zoo.search.vectors import SPACES, SearchSpace

__all__ = ["SPACES", "Index", "SearchSpace", "tune"]
