"""A run's answers and how sure they are, calibrated by probes and measured on its test split."""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from halo_search.confidence import Confidence, Probes, QueryScores
from zoo import metrics
from zoo.data.records.sources import Split
from zoo.embeddings import has_uncertainty, log_uncertainty
from zoo.evaluation import known, retrieval
from zoo.evaluation.fits import learn_fits, with_fits
from zoo.evaluation.gallery import gallery_of, item_vectors
from zoo.evaluation.probes import bank_of_training, captioned_of, make_probes
from zoo.metrics import bootstrap, kind_of_gain
from zoo.metrics.blocks import row_blocks
from zoo.metrics.confidence import abstention_auc, confidence_quality
from zoo.models import DualEncoder
from zoo.models.run_folder import RunFolder

RESAMPLES = 400  # of the queries, for the interval of nAUC
ERROR = 0.1
# The penalty of the weights is this over the queries. Of 0, 1, 3, 10 and 30 the greatest carried
# over best from seen classes to unseen ones and cost little within one split (docs/confidence.md).
SHRINKAGE = 30
_IN_BLOCK = 2**22  # similarities; features are made of them in float64


@dataclasses.dataclass(frozen=True, eq=False)
class Answers:
    """A model's answers to the Q queries of one direction that have a match: `QueryScores`, the
    rank `(Q,)` of each query's best match, 1 = first, ties against the model, the logarithm `(Q,)`
    of its uncertainty or None, and the size of the gallery.

    ```python
    encoded = zoo.evaluation.encode(model, split.records, split.source)
    zoo.evaluation.Answers.of(encoded, model.similarity, "t2i").correct.mean()  # Recall@1
    ```
    """

    scores: QueryScores
    ranks: np.ndarray
    uncertainty: np.ndarray | None
    num_items: int

    @classmethod
    def of(
        cls,
        encoded: retrieval.EncodedSplit,
        similarity: Callable,
        direction: Literal["i2t", "t2i"],
        most: int | None = None,
        seed: int = 0,
        copies: float | None = None,
    ) -> "Answers":
        """The answers of an encoded split, of `most` queries at most, drawn at random; `copies` is
        of `halo_search.confidence.agreement`. Raises ValueError if no query has a match, or a
        similarity is not finite."""
        records = encoded.records
        # Of a few queries only their own rows are computed.
        pairs = (encoded.pairs_in_memory if most is None else encoded.pairs)(similarity)
        labels, others = records.image_labels, records.caption_labels
        queries, gallery, uncertainty = encoded.images, encoded.captions, None
        if direction == "t2i":
            labels, others, pairs = others, labels, pairs.transposed()
            queries, gallery = gallery, queries
        vectors = item_vectors(gallery, similarity)
        chosen = np.flatnonzero(np.isin(labels, others))
        if not len(chosen):
            raise ValueError("no query has a match")
        if most is not None and len(chosen) > most:
            rng = np.random.default_rng(seed)
            chosen = np.sort(rng.choice(chosen, most, replace=False))
        if len(chosen) < len(labels):
            pairs = pairs.take(chosen, np.arange(len(others)))
        queries = {name: np.asarray(values)[chosen] for name, values in queries.items()}
        if encoded.measure_name is not None and has_uncertainty(queries):
            uncertainty = np.asarray(log_uncertainty(queries, encoded.measure_name), float)
        pairs = pairs.in_memory()
        relevance = metrics.LabelRelevance(labels[chosen], others)
        ranks = metrics.rank_queries(pairs, relevance).best_rank
        blocks = [
            QueryScores.of_matrix(rows, vectors=vectors, copies=copies)
            for _, rows in row_blocks(pairs, max(1, _IN_BLOCK // pairs.shape[1]))
        ]
        return cls(QueryScores.concatenate(blocks), ranks, uncertainty, pairs.shape[1])

    def __len__(self) -> int:
        return len(self.ranks)

    @property
    def correct(self) -> np.ndarray:
        """`(Q,)`, whether the first answer is a match."""
        return self.ranks == 1

    @property
    def signals(self) -> dict[str, np.ndarray]:
        """Measures of how sure an answer is that need no calibration, by name: `(Q,)` arrays."""
        best = self.scores.top[:, 0]
        uncertainty = {} if self.uncertainty is None else {"uncertainty": -self.uncertainty}
        return {**uncertainty, "best_score": best, "best_minus_mean": best - self.scores.mean}

    def take(self, queries: ArrayLike) -> "Answers":
        """Some of the queries."""
        return Answers(
            self.scores.take(queries),
            self.ranks[queries],
            None if self.uncertainty is None else self.uncertainty[queries],
            self.num_items,
        )


def fitted(answers: Answers) -> Confidence:
    """A `Confidence` of some queries, with their uncertainty where they have one. Raises ValueError
    if too few queries, hardly one right or wrong, teach nothing."""
    penalty = max(0.01, SHRINKAGE / len(answers))  # 0.01 is the least of `fit` too
    return Confidence.fit(answers.scores, answers.correct, answers.uncertainty, penalty=penalty)


def cross_fitted(answers: Answers, seed: int = 0) -> np.ndarray:
    """The probability of each query, by a fit without its fifth of them; raises as `fitted`."""
    probability = np.empty(len(answers))
    order = np.random.default_rng(seed).permutation(len(answers))
    for fold in np.array_split(order, 5):
        others, held = answers.take(np.setdiff1d(order, fold)), answers.take(fold)
        confidence = fitted(others)
        probability[fold] = said_of(confidence, held)
    return probability


def said_of(confidence: Confidence, answers: Answers) -> np.ndarray:
    """The probability of each answer, by a calibration that reads the uncertainty or does not."""
    reads = "uncertainty" in confidence.names
    return confidence.probability(answers.scores, answers.uncertainty if reads else None)


def measure(confidence: Confidence, answers: Answers) -> dict[str, Any]:
    """What a calibration is worth on `Answers` of its gallery, in shares: `worth`, `nauc_of` each
    signal alone, and what `smallest_k` promises and keeps, or None."""
    probability = said_of(confidence, answers)
    result = {
        "calibration_queries": confidence.num_queries,
        **worth(probability, answers.correct),
        "nauc_of": {
            name: abstention_auc(values, answers.correct)
            for name, values in answers.signals.items()
        },
        "smallest_k": None,
    }
    k = None if confidence.in_gallery is None else confidence.first_k(ERROR)
    if k is not None and k <= answers.num_items:
        held = float(np.mean(answers.ranks <= k))
        result["smallest_k"] = {"k": k, "promised": 1 - ERROR, "coverage": held}
    return result


def worth(probability: np.ndarray, correct: np.ndarray) -> dict[str, Any]:
    """What probabilities are worth: `confidence_quality`, `said`, the mean probability, `right`,
    `nauc_interval`, 95 % of it, and by it the `verdict`."""
    gain = bootstrap(abstention_auc, probability, correct, resamples=RESAMPLES)
    return {
        "queries": len(correct),
        "said": float(probability.mean()),
        "right": float(correct.mean()),
        **confidence_quality(probability, correct),
        "nauc_interval": [gain.low, gain.high],
        "verdict": kind_of_gain(gain),
    }


def calibrate_run(
    folder: RunFolder,
    model: DualEncoder,
    validation: Split,
    test: Split,
    encoded: retrieval.EncodedSplit,
    train: Split | None = None,
    seed: int = 0,
    complete_model: DualEncoder | None = None,
) -> dict[str, Any]:
    """Keeps a run's probes, calibrates both directions on the test gallery by them, and measures.

    Nothing that a calibration may lack, such as queries or wrong answers, is an error: the results
    say why in a sentence, and a run is never lost.

    Args:
        folder: the `RunFolder`, for the file of the probes.
        model, train, seed, complete_model: as of `make_probes`.
        validation, test: the `zoo.data.Split`s. The probes are pairs of the validation split.
        encoded: the `EncodedSplit` of the test split.

    Returns:
        By direction how good the probabilities are on the test split, with `declined_as_unknown`,
        the share of queries that the model is said not to know; or `why_not`, a sentence.
    """
    folder.written.remove([folder.probes_path.name])  # of an attempt that was stopped
    folder.written.claim(folder.probes_path.name)
    probes, why_not = None, "the validation split is the test split"
    theirs, test_records = (
        validation.records,
        test.records,
    )  # the same where a loader has no third split
    if theirs.name != test_records.name or not np.array_equal(
        theirs.image_ids, test_records.image_ids
    ):
        try:
            seen = retrieval.encode(model, validation.records, validation.source)
            probes = make_probes(model, seen, train, seed, complete_model=complete_model)
            captioned = None
            if not probes.by_class:  # of a class all items fit
                asked = complete_model or model
                captioned = captioned_of(seen, validation, model.similarity, asked, probes)
            if captioned is not None:
                bank = bank_of_training(model, train, seed)
                captioned = dataclasses.replace(captioned, near=bank)
                probes = with_fits(probes, learn_fits(captioned, seed=seed), bank)
            probes.save(folder.probes_path)
        except ValueError as error:
            why_not = str(error)
    results = {}
    for direction in ("i2t", "t2i"):
        results[direction] = {"why_not": why_not}
        if probes is not None:
            results[direction] = _by_probes(probes, model, encoded, direction, seed)
    return results


def _by_probes(probes, model, encoded, direction, seed):
    """What a calibration by probes is worth on the test gallery, or why there is none."""
    try:
        confidence = calibrated(probes, model.similarity, encoded, direction, seed)
        answers = Answers.of(encoded, model.similarity, direction, copies=confidence.copies)
        results = measure(confidence, answers)
    except ValueError as error:
        return {"why_not": str(error)}
    if confidence.known is not None:
        asked = (encoded.images,)
        if direction == "t2i":
            asked = encoded.captions, encoded.records.captions
        facts = known.query_facts(model, *asked)
        results["declined_as_unknown"] = float(confidence.known.declined(**facts).mean())
    return results


def calibrated(
    probes: Probes,
    similarity: Callable,
    encoded: retrieval.EncodedSplit,
    direction: str,
    seed: int = 0,
) -> Confidence:
    """Calibrates one direction on the gallery of an encoded split by a model's
    `halo_search.confidence.Probes`, and returns the `Confidence`. Raises what
    `halo_search.confidence.calibrate_on` raises."""
    side = "images" if direction == "t2i" else "captions"
    items = encoded.images if direction == "t2i" else encoded.captions
    return probes.calibrate(gallery_of(items, similarity, side), direction, seed=seed)
