"""The retriever over the packaged photos, which several files ask."""

import functools

import pytest

import zoo
from tools import live


@functools.cache
def built():
    """`(retriever, embeddings of the photos)`, by the vectors that come with them.

    That these are the photos' own is asked in tests/demo/test_sources.py.
    """
    if live.PRESET not in zoo.list_presets():
        pytest.skip("this checkout has no preset of photos")
    return live.retriever_of(live.PRESET)
