"""Search: exact nearest neighbours of points, Gaussians and sets."""

from zoo.errors import require
from zoo.former import lookup

require("faiss", extra="search")  # before the modules that import it

from zoo.embeddings.spaces import SPACES, SearchSpace  # noqa: E402
from zoo.search.hubness import Hub, hubs  # noqa: E402
from zoo.search.index import Index  # noqa: E402

__all__ = ["SPACES", "Hub", "Index", "SearchSpace", "hubs"]

__getattr__ = lookup(__name__)  # names of earlier versions
