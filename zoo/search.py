"""Search over embeddings: the index of `halo_search`, by the name that it has among models."""

from halo_search.index import SPACES, Hub, Index, SearchSpace, hubs

__all__ = ["SPACES", "Hub", "Index", "SearchSpace", "hubs"]
