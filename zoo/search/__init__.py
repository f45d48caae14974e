"""Search: exact nearest neighbours of points, Gaussians and sets."""

from zoo.errors import require

require("faiss", extra="search")  # before the modules that import it

from zoo.embeddings.spaces import SPACES, SearchSpace  # noqa: E402
from zoo.search.hubness import Hub, hubs  # noqa: E402
from zoo.search.index import Index  # noqa: E402

__all__ = ["SPACES", "Hub", "Index", "SearchSpace", "hubs"]
