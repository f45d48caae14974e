"""The retriever over the packaged photos, which several files ask."""

import functools

import pytest

import zoo
from halo_search.photos import packaged_vectors
from zoo.models.tower import weights_sha256

PRESET = "photos_pfe"


@functools.cache
def built():
    """`(retriever, embeddings of the photos)`, by the vectors that come with them.

    That these are the photos' own is asked in tests/demo/test_sources.py.
    """
    if PRESET not in zoo.list_presets():
        pytest.skip("this checkout has no preset of photos")
    images = packaged_vectors(weights_sha256(zoo.from_preset(PRESET)))
    photos = zoo.data.packaged_photos()
    if images is None:
        images = zoo.Tower(PRESET, "images").of_files(photos)
    names = [path.name for path in photos]
    return zoo.Retriever.build(PRESET, images, names=names), images
