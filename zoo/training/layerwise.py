"""A learning rate of its own for every part of a model."""

import collections
import contextlib
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from zoo.embeddings import Tensor
from zoo.encoders.clip import clip_blocks
from zoo.models import DualEncoder
from zoo.training.adamp import AdamP


class LayerwiseRates:
    """Gives an optimizer a factor on the learning rate for each variable: a mix-in.

    ```python
    @keras.saving.register_keras_serializable(package="halo")
    class LayerwiseLion(zoo.training.LayerwiseRates, keras.optimizers.Lion): ...
    ```

    The factor scales the learning rate and with it the decoupled weight decay, as parameter groups
    do elsewhere; clipping by global norm stays that of one optimizer, which a
    `keras.optimizers.MultiOptimizer` would change. `rates` is a dict from variable paths to
    factors, 1 for what it does not name; or a list of one for each trainable variable in order,
    which a built optimizer saves. Raises ValueError if one is negative and, when the optimizer is
    built, if a key names no variable or several.
    """

    def __init__(self, *args: Any, rates: dict[str, float] | None = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.rates = rates or {}
        values = self.rates.values() if isinstance(self.rates, dict) else self.rates
        for rate in values:
            if not 0.0 <= rate < float("inf"):
                raise ValueError(f"`rates` must be finite and not negative; received {rate}")
        self._rate_of = []

    def build(self, variables: list) -> None:
        if not self.built:
            self._rate_of = _resolve(self.rates, [variable.path for variable in variables])
        super().build(variables)

    def update_step(self, gradient: Tensor, variable: Any, learning_rate: Tensor) -> None:
        """Updates one variable by its share of the rate, after the one before it."""
        index = self._get_variable_index(variable)
        with _after(self._trainable_variables[index - 1] if index else None):
            self._update(gradient, variable, learning_rate * self._rate_of[index])

    def _update(self, gradient, variable, learning_rate):
        """The decay, where it is Keras', and the optimizer's own update."""
        if self._has_keras_weight_decay and self._use_weight_decay(variable):
            factor = keras.ops.cast(learning_rate * self.weight_decay, variable.dtype)
            self.assign_sub(variable, variable * factor)
        super().update_step(gradient, variable, learning_rate)

    def _apply_weight_decay(self, variables):
        # Keras decays all variables by one learning rate. Here its decay moves to `update_step`;
        # an optimizer with a decay of its own, AdamP, has it there already.
        if not self._has_keras_weight_decay:
            super()._apply_weight_decay(variables)

    @property
    def _has_keras_weight_decay(self):
        """Whether the optimizer decays by Keras' method, and not by one of its own."""
        inherited = super()._apply_weight_decay.__func__
        return self.weight_decay and inherited is keras.optimizers.Optimizer._apply_weight_decay

    def get_config(self) -> dict[str, Any]:
        rates = dict(self.rates) if isinstance(self.rates, dict) else list(self.rates)
        return {**super().get_config(), "rates": list(self._rate_of) or rates}


@keras.saving.register_keras_serializable(package="halo")
class LayerwiseAdamW(LayerwiseRates, keras.optimizers.AdamW):
    """`keras.optimizers.AdamW` with `LayerwiseRates`.

    ```python
    zoo.training.LayerwiseAdamW(1e-3, rates={"image_encoder/head/kernel": 0.01})
    ```
    """


@keras.saving.register_keras_serializable(package="halo")
class LayerwiseAdamP(LayerwiseRates, AdamP):
    """`zoo.training.AdamP` with `LayerwiseRates`.

    ```python
    rates = zoo.training.dual_encoder_rates(model)
    model.compile(zoo.training.LayerwiseAdamP(1e-3, rates=rates))
    ```
    """


def rates_by_depth(blocks: Sequence, decay: float = 1.0, rate: float = 1.0) -> dict[str, float]:
    """Factors by variable paths that shrink from the output to the input of an encoder: block `i`
    of `n`, a layer, a variable or a list of such, has `rate · decay^(n − 1 − i)`, but for what is
    frozen. Raises ValueError if `decay` is not in (0, 1], or a variable stands in several blocks.

    Reference: Clark et al., ELECTRA, ICLR 2020, appendix A; PCME++ (Chun, ICLR 2024), section 3.1.
    """
    if not 0.0 < decay <= 1.0:
        raise ValueError(f"`decay` must be in (0, 1]; received {decay}")
    blocks = list(blocks)
    rates = {}
    for depth, block in enumerate(blocks):
        for path in sorted({variable.path for variable in _trainable_variables(block)}):
            if path in rates:
                raise ValueError(f"`blocks` must not overlap; {path!r} stands in two of them")
            rates[path] = rate * decay ** (len(blocks) - 1 - depth)
    return rates


def dual_encoder_rates(
    model: DualEncoder,
    image_rate: float = 0.01,
    caption_rate: float = 0.1,
    layer_decay: float = 0.7,
    decay_last_block: bool = False,
) -> dict[str, float]:
    """The factors on the learning rate of PCME++'s parameter groups, for `LayerwiseAdamP`.

    Heads and the similarity have 1, a backbone has its rate. The last block of a CLIP backbone has
    the backbone's rate, and each block below it has `layer_decay` times the rate of the next one.

    With `decay_last_block` the last one has that factor once too.

    Reference: PCME++ (Chun, ICLR 2024), section 3.1 ("for each transformer block") and table B.1.
    Released code differs: its last block has `layer_decay` too; it counts 12 blocks in every
        network, which is wrong for ViT-L/14.
    """
    rates = {}
    for tower, rate in (
        (model.image_encoder, image_rate),
        (model.caption_encoder, caption_rate),
    ):
        last = rate * layer_decay if decay_last_block else rate
        for backbone in (layer for layer in tower.layers if layer.name == "backbone"):
            rates |= rates_by_depth([backbone], rate=rate)
            rates |= rates_by_depth(clip_blocks(backbone), layer_decay, last)
    return rates


def _trainable_variables(block):
    """The trainable variables of a layer, of a variable, or of a list of either."""
    if isinstance(block, keras.Variable):
        return [block] if block.trainable else []
    if isinstance(block, (list, tuple)):
        return [variable for part in block for variable in _trainable_variables(part)]
    return block.trainable_variables


def _after(variable):
    """What is made in this context waits until the variable has been updated."""
    if variable is None or tf.executing_eagerly() or tf.distribute.has_strategy():
        return contextlib.nullcontext()
    return tf.control_dependencies([variable.value.read_value()])


def _resolve(rates, paths):
    """One factor for each path."""
    if not isinstance(rates, dict):
        if len(rates) != len(paths):
            raise ValueError(
                f"`rates` must have one factor for each of the {len(paths)} trainable variables; "
                f"received {len(rates)}"
            )
        return list(rates)
    counts = collections.Counter(paths)
    unused = sorted(rates.keys() - counts.keys())
    if unused:
        raise ValueError(
            f"`rates` must name variables of the model; {unused} match none of {paths[:5]} …"
        )
    for path in rates:
        if counts[path] > 1:
            raise ValueError(
                f"`rates` names {path!r}, which is the path of {counts[path]} variables; "
                "give their layers different names"
            )
    return [rates.get(path, 1.0) for path in paths]
