"""A small gallery of classes and queries about them, some harder than others."""

import dataclasses

import numpy as np
import pytest


@dataclasses.dataclass
class World:
    """Queries and a gallery of unit vectors; scores are −‖q − g‖²."""

    queries: np.ndarray
    gallery: np.ndarray
    similarity: np.ndarray
    relevance: np.ndarray
    difficulty: np.ndarray

    @property
    def correct(self):
        return self.relevance[np.arange(len(self.queries)), self.similarity.argmax(axis=1)]


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.fixture(scope="session")
def draw():
    """A function that draws a `World`; `classes` limits what is asked for."""

    def draw(seed=0, count=600, items=400, num_classes=25, dim=16, classes=None, world_seed=0):
        fixed = np.random.default_rng(world_seed)
        centres = unit(fixed.normal(size=(num_classes, dim)))
        labels = np.arange(items) % num_classes
        gallery = unit(centres[labels] + 0.15 * fixed.normal(size=(items, dim)))
        hardness = fixed.uniform(0.15, 0.5, num_classes)
        rng = np.random.default_rng([seed, world_seed])
        own = rng.choice(num_classes if classes is None else classes, count)
        queries = unit(centres[own] + hardness[own][:, None] * rng.normal(size=(count, dim)))
        similarity = -((queries[:, None] - gallery[None]) ** 2).sum(-1)
        return World(
            queries, gallery, similarity, own[:, None] == labels[None], np.log(hardness[own])
        )

    return draw
