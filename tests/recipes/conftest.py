"""What the runs of all recipes' tests share."""

import functools

import keras
import pytest

from zoo.report import style


@pytest.fixture(autouse=True)
def _no_collection(monkeypatch):
    """A table forgets the graphs of each run; to look for them takes longer than a small run."""
    forget = functools.partial(keras.backend.clear_session, free_memory=False)
    monkeypatch.setattr(keras.backend, "clear_session", forget)


@pytest.fixture(scope="session", autouse=True)
def coarse_figures():
    """Every run draws half a dozen figures; at a third of the resolution that takes half a second.

    The figures themselves are tested in tests/report.
    """
    (fine,) = style.save.__defaults__
    style.save.__defaults__ = (50,)
    yield
    style.save.__defaults__ = (fine,)


@pytest.fixture
def fine_figures():
    """At the resolution that a user has."""
    coarse = style.save.__defaults__
    style.save.__defaults__ = (150,)
    yield
    style.save.__defaults__ = coarse
