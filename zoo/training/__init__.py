"""Settings, run folders, exact resumption, optimizers and averaging around Keras' own `fit`."""

from zoo.compat import clip_after_the_sum
from zoo.training.adamp import AdamP
from zoo.training.averaging import StochasticWeightAveraging
from zoo.training.checks import CollapseCheck, CollapseWarning, FiniteCheck
from zoo.training.execution import Execution, distribute, in_micro_batches, on_one_device
from zoo.training.history import HistoryFile, read_history
from zoo.training.layerwise import (
    LayerwiseAdamP,
    LayerwiseAdamW,
    LayerwiseRates,
    dual_encoder_rates,
    rates_by_depth,
)
from zoo.training.one_phase import fit_phase
from zoo.training.phases import Phase, fit
from zoo.training.rates import WarmUpThenDrops, cosine, cosine_after_a_twentieth, drop_after
from zoo.training.recipe import finish, finish_ensemble, show, train
from zoo.training.resume import Resume
from zoo.training.run import Run, check_benchmark, start
from zoo.training.settings import (
    UNSAID,
    CUBSettings,
    PretrainedSettings,
    RetrievalSettings,
    RunSettings,
    check_weights,
)
from zoo.training.strategies import strategy, synchronize_batch_normalization
from zoo.training.validation import BestEpoch, Validation, read_best, restore_best
from zoo.training.vector_settings import VectorSettings

__all__ = [
    "UNSAID",
    "AdamP",
    "BestEpoch",
    "CUBSettings",
    "CollapseCheck",
    "CollapseWarning",
    "Execution",
    "FiniteCheck",
    "HistoryFile",
    "LayerwiseAdamP",
    "LayerwiseAdamW",
    "LayerwiseRates",
    "Phase",
    "PretrainedSettings",
    "Resume",
    "RetrievalSettings",
    "Run",
    "RunSettings",
    "StochasticWeightAveraging",
    "Validation",
    "VectorSettings",
    "WarmUpThenDrops",
    "check_benchmark",
    "check_weights",
    "clip_after_the_sum",
    "cosine",
    "cosine_after_a_twentieth",
    "distribute",
    "drop_after",
    "dual_encoder_rates",
    "finish",
    "finish_ensemble",
    "fit",
    "fit_phase",
    "in_micro_batches",
    "on_one_device",
    "rates_by_depth",
    "read_best",
    "read_history",
    "restore_best",
    "show",
    "start",
    "strategy",
    "synchronize_batch_normalization",
    "train",
]
