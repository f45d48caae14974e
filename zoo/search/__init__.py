"""Search: exact nearest neighbours of points, Gaussians and sets."""

from zoo.embeddings.spaces import SPACES, SearchSpace
from zoo.errors import lookup
from zoo.search.hubness import Hub, hubs
from zoo.search.index import Index

__all__ = ["SPACES", "Hub", "Index", "SearchSpace", "hubs"]

__getattr__ = lookup(__name__)  # names of earlier versions
