"""Tests of the retriever."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def _quick(packaged_once):
    """Packaged presets are read once."""
