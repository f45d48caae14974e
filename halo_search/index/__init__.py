"""Search: exact nearest neighbours of points, Gaussians and sets."""

from halo_search.embeddings.spaces import SPACES, SearchSpace
from halo_search.index.hubness import Hub, hubs
from halo_search.index.index import Index

__all__ = ["SPACES", "Hub", "Index", "SearchSpace", "hubs"]
