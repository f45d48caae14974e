"""Settings, run folders, exact resumption, optimizers and averaging around Keras' own `fit`."""

from zoo.layers.compat import clip_after_the_sum
from zoo.training.adamp import AdamP
from zoo.training.averaging import StochasticWeightAveraging
from zoo.training.checks import FiniteCheck
from zoo.training.execution import (
    Execution,
    distribute,
    on_one_device,
    strategy,
    synchronize_batch_normalization,
)
from zoo.training.history import HistoryFile, read_history
from zoo.training.layerwise import (
    LayerwiseAdamP,
    LayerwiseAdamW,
    LayerwiseRates,
    dual_encoder_rates,
    rates_by_depth,
)
from zoo.training.phases import (
    Phase,
    WarmUpThenDrops,
    cosine_decay,
    drop_after,
    run_phases,
)
from zoo.training.resume import Resume, fit_phase
from zoo.training.run import Run, finish, finish_ensemble, show, start
from zoo.training.settings import RetrievalSettings, RunSettings
from zoo.training.validation import BestEpoch, Validation, read_best, restore_best

__all__ = [
    "AdamP",
    "BestEpoch",
    "Execution",
    "FiniteCheck",
    "HistoryFile",
    "LayerwiseAdamP",
    "LayerwiseAdamW",
    "LayerwiseRates",
    "Phase",
    "Resume",
    "RetrievalSettings",
    "Run",
    "RunSettings",
    "StochasticWeightAveraging",
    "Validation",
    "WarmUpThenDrops",
    "clip_after_the_sum",
    "cosine_decay",
    "distribute",
    "drop_after",
    "dual_encoder_rates",
    "finish",
    "finish_ensemble",
    "fit_phase",
    "on_one_device",
    "rates_by_depth",
    "read_best",
    "read_history",
    "restore_best",
    "run_phases",
    "show",
    "start",
    "strategy",
    "synchronize_batch_normalization",
]
