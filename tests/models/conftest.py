"""Tests of models."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def _quick(packaged_once, unoptimized_graphs):
    """Graphs are not optimized, and packaged presets are read once."""
