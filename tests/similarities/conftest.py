"""Tests of similarities."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def _quick(unoptimized_graphs):
    """Models here are traced and run a few times: graphs are not optimized."""
