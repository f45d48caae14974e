"""A run as its report sees it: encoded, compared, ranked."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from zoo import metrics, similarities
from zoo.evaluation.retrieval import EncodedSplit, encode
from zoo.report.bootstrap import RESAMPLES, bootstrap
from zoo.report.style import DIRECTIONS


@dataclass(frozen=True, eq=False)
class ReportedRun:
    """What the sections of a report read.

    Attributes:
        name: what to call the run.
        split: an `EncodedSplit`.
        similarity: the layer or function to rank by.
        model: the `DualEncoder`, or None, where nothing can be encoded anew.
        picture: function from an image's index to its pixels, 0 … 255, or None.
        fits: `(M,)`, how many images each caption is true of, or None where that is not known.
        generic: a caption that says nothing in particular.
        items: how many images or captions are encoded anew for an experiment.
        resamples: of the bootstrap.
        seed: of everything that is drawn.
    """

    name: str
    split: EncodedSplit
    similarity: Any
    model: Any = None
    picture: Callable | None = None
    fits: np.ndarray | None = None
    generic: str = "a picture."
    items: int = 256
    resamples: int = RESAMPLES
    seed: int = 0

    @property
    def records(self):
        return self.split.records

    @property
    def is_uncertain(self):
        """Whether there are uncertainties to report on."""
        return self.split.image_uncertainty is not None

    @property
    def is_gaussian(self):
        return "log_variance" in self.split.images

    @functools.cached_property
    def pairs(self):
        """All similarities, kept where they fit into 1 GiB."""
        return self.split.pairs(self.similarity).kept()

    @functools.cached_property
    def ranks(self):
        """`QueryRanks` by direction, both ranked in blocks."""
        truth = self.split.relevance
        return {
            "i2t": metrics.rank_queries(self.pairs, truth),
            "t2i": metrics.rank_queries(self.pairs.transposed(), truth.transposed()),
        }

    @property
    def uncertainty(self):
        """By direction, of its queries."""
        return {"i2t": self.split.image_uncertainty, "t2i": self.split.caption_uncertainty}

    def asked(self, direction):
        """The best ranks and uncertainties of the queries with a positive, `(queries,)` each."""
        ranks = self.ranks[direction]
        return ranks.best_rank[ranks.has_positive], self.uncertainty[direction][ranks.has_positive]

    def estimate(self, statistic, *columns):
        """`bootstrap` with this report's seed."""
        return bootstrap(statistic, *columns, resamples=self.resamples, seed=self.seed)

    def choose(self, count):
        """Up to `items` of so many, in order."""
        generator = np.random.default_rng([self.seed, count])
        return np.sort(generator.choice(count, min(self.items, count), replace=False))


def of_model(model, held_out, name, ranking="own", **options):
    """Encodes a split for a report.

    Args:
        model: a `DualEncoder` with a tokenizer.
        held_out: a `zoo.recipe.Split`.
        name: what to call it.
        ranking: `"own"`, or another of `zoo.similarities.NAMES` to rank by.
        **options: of `ReportedRun`.

    Raises:
        ValueError: if the ranking is unknown.
    """
    similarity = model.similarity if ranking == "own" else similarities.get(ranking, model)
    return ReportedRun(
        name,
        encode(model, held_out.records, held_out.source),
        similarity,
        model=model,
        picture=held_out.picture,
        fits=held_out.true_matches,
        generic=generic_caption(held_out.records),
        **options,
    )


def generic_caption(records):
    """What could be said of anything in a data set: "this is a bird" where most captions do."""
    birds = np.mean(["bird" in caption.lower() for caption in records.captions[:1000]])
    return "this is a bird." if birds > 0.5 else "a picture."


def by_direction(function):
    """`function(direction, words)` for both, one after the other."""
    return [item for direction, words in DIRECTIONS.items() for item in function(direction, words)]
