"""DAA or Smooth-AP beside the loss of any recipe's model, and ASP among its results."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from zoo import evaluation, losses, metrics
from zoo.cli import setting
from zoo.data.semantics import semantics
from zoo.metrics.cider_score import VARIANTS
from zoo.training.settings import RunSettings

SEMANTICS = Path("data") / "semantics"


@dataclass(frozen=True, kw_only=True)
class RankingSettings(RunSettings):
    """The flags that add semantic precision to a recipe."""

    daa_weight: float = setting(0.0, "of semantic precision (DAA) in the loss; 0: none")
    smooth_ap_weight: float = setting(0.0, "of Smooth-AP in the loss, DAA's baseline; 0: none")
    daa_temperature: float = setting(
        0.01, "of both terms' ranks, in units of what they rank", source="DAA, for PCME"
    )
    semantic_temperature: float | None = setting(
        None, "of ranks by semantics; default: the same", source="DAA"
    )
    daa_samples: int = setting(
        0, "rank so many samples of each Gaussian, as DAA; 0: the model's own logits"
    )
    semantics: Literal[VARIANTS] = setting("cider", "what captions have in common, for DAA and ASP")
    semantics_dir: Path = setting(SEMANTICS, "folder that keeps what was counted", identity=False)
    asp: bool = setting(False, "measure ASP, the average semantic precision")
    asp_every: int = setting(0, "epochs between measurements of ASP while training; 0: none")


def with_semantics(settings, splits):
    """The splits, with semantics of the training captions where a term of the loss reads them."""
    if not settings.daa_weight:
        return splits
    records = splits.train.records
    found = semantics(records, settings.semantics, settings.semantics_dir)
    records = dataclasses.replace(records, semantics=found)
    return splits._replace(train=dataclasses.replace(splits.train, records=records))


def with_ranking_terms(settings, model):
    """The model, with the terms that the settings ask for."""
    samples, tau = settings.daa_samples or None, settings.daa_temperature
    terms = [
        losses.AuxiliaryRanking(loss, weight, samples, settings.seed)
        for loss, weight in (
            (losses.SemanticPrecision(tau, settings.semantic_temperature), settings.daa_weight),
            (losses.SmoothAveragePrecision(tau), settings.smooth_ap_weight),
        )
        if weight
    ]
    return model.with_auxiliaries(*terms) if terms else model


def asp_checks(settings, held_out):
    """The callbacks of every phase that measure ASP on a `Split` while training."""
    if not settings.asp_every:
        return []
    records = held_out.records
    truth = semantics(records, settings.semantics, settings.semantics_dir, verbose=False).matrix()
    return [evaluation.SemanticEvaluation(records, held_out.source, truth, settings.asp_every)]


def semantic_precision(settings, records, similarity):
    """ASP of an evaluated split in percent, `{"i2t", "t2i"}`.

    Args:
        settings: a recipe's.
        records: of the split.
        similarity: `(images, captions)`, a matrix or a `PairwiseSimilarity`.
    """
    truth = semantics(records, settings.semantics, settings.semantics_dir, verbose=False).matrix()
    found = metrics.average_semantic_precision(similarity, truth)
    return {direction: 100 * value for direction, value in found.items()}
