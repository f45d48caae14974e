"""Embeddings in Milvus, embedded or a cluster, in the order and the units of their similarity."""

from zoo.search.milvus.bulk import write_bulk
from zoo.search.milvus.index import MilvusIndex

__all__ = ["MilvusIndex", "write_bulk"]
