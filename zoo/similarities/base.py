"""The contract of every similarity layer, and of those with a learned scale and shift."""

import json

import keras
import numpy as np
from keras import ops

from zoo.embeddings import SET, as_embedding
from zoo.embeddings.layer import Layer

REGISTERED = {}  # identifier: class


class Similarity(Layer):
    """Base of the similarity layers: two batches of embeddings in, a matrix of logits out.

    A subclass writes `call(images, captions)` and states the class attributes below. Search,
    calibration, export, demo, evaluation and recipes read them, so a new similarity needs no entry
    elsewhere. They are inherited as any attribute is; a subclass that overrides `call` states its
    own `identifier`, `space`, `from_space` and `function`. Scale and shift, if any, are created in
    `__init__`: they are scalars, and no shape has to be known.

    ```python
    class Manhattan(zoo.similarities.Similarity):
        identifier = "manhattan"
        embeddings = ("a point", "a Gaussian")
        space = "euclidean"  # finds the candidates, which `call` ranks

        def call(self, images, captions):
            difference = images["mean"][:, None] - captions["mean"][None]
            return -keras.ops.sum(keras.ops.abs(difference), axis=-1)
    ```

    Class attributes:
        identifier: the public name in flags, results and `zoo.similarities.get`. Stating it
            registers the class.
        embeddings: the kinds of embedding it takes, as `zoo.embeddings.kind` calls them.
        space: name of the `halo_search.index.SearchSpace` that finds its neighbours or candidates
            for them; None where no index can. Sets are found by their elements, see `space_for`.
        from_space: function from the space's values (NumPy) to the values of `function`, for
            every item; None where the space only finds candidates.
        function: the mathematical quantity, `(images, captions) -> (N, M)`, or None.
        is_distance: whether the least value of `function` is the best. The greatest output of the
            layer is the best in any case.
        is_log_odds: whether the output is the log-odds of a match once it has been trained with
            `zoo.losses.MatchingCrossentropy`, see `zoo.models.DualEncoder.gives_match_probability`.
        needs_model: whether the layer means nothing without trained weights, so that
            `zoo.similarities.get` cannot make one.
    Call arguments: images and captions, N and M embeddings: dicts of tensors, or what
        `encode_images` and `encode_captions` returned.
    Output: `(N, M)` float32, higher is better, whatever the global precision: distances of
        near-identical points do not survive half precision.

    Raises:
        ValueError: when a class states an identifier that another class has.
        TypeError: when a class overrides `call` and states not all that goes with it.
    """

    identifier = None
    embeddings = ()
    space = None
    from_space = None
    function = None
    is_distance = False
    is_log_odds = False
    needs_model = False

    def __init_subclass__(cls, **kwargs):
        """Registers a similarity by its identifier. Raises TypeError if a class with a `call` of
        its own inherits what follows from its parent's."""
        super().__init_subclass__(**kwargs)
        attributes = vars(cls)
        inherited = [name for name in _OF_A_CALL if getattr(cls, name) is not None]
        if "call" in attributes and (
            left_out := [name for name in inherited if name not in attributes]
        ):
            raise TypeError(
                f"{cls.__name__} has a `call` of its own, so it must state {', '.join(left_out)} "
                "too (None where there is none); received only those of its parent"
            )
        if attributes.get("function") is not None:
            cls.function.owner = cls  # by which an index knows the function again
        if attributes.get("identifier") is not None:
            _register(cls)

    def __init__(self, **kwargs):
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        self.built = True

    def __call__(self, images, captions, **kwargs):
        # Distributions are not tensors, so Keras must not see them as layer inputs.
        images, captions = as_embedding(images, "images"), as_embedding(captions, "captions")
        return super().__call__(images, captions, **kwargs)

    @classmethod
    def for_ranking(cls, trained=None):
        """A layer to rank by where the model was trained with another similarity, or with None."""
        return cls()

    @classmethod
    def space_for(cls, kind):
        """Name of the space that finds neighbours among embeddings of a kind, or None."""
        return "elements" if cls.space and kind == SET else cls.space

    def scorer(self):
        """The function from the space's values to this layer's output, as NumPy arrays; learned
        numbers are read once. None where the space only finds candidates."""
        return None

    def identity(self):
        """The layer with its learned scalars as JSON values, which tell two of them apart."""
        layer = keras.saving.serialize_keras_object(self)
        del layer["config"]["name"]  # Keras counts names
        weights = [np.asarray(weight).tolist() for weight in self.weights]
        return json.loads(json.dumps({"layer": layer, "weights": weights}))


# What belongs to one `call`: with another one, search would rank by the parent's.
_OF_A_CALL = ("identifier", "space", "from_space", "function")


def _register(cls):
    """Makes a similarity known by its identifier. Raises ValueError if another class has it."""
    before = REGISTERED.get(cls.identifier)
    same = before and (before.__module__, before.__qualname__) == (cls.__module__, cls.__qualname__)
    if before and not same:  # the same class again is a notebook's cell that runs twice
        raise ValueError(
            f"`identifier` must be free; {cls.identifier!r} is {before.__module__}."
            f"{before.__qualname__}"
        )
    REGISTERED[cls.identifier] = cls


def unchanged(value):
    """`from_space` of a quantity that is the space's own value."""
    return value


def root(value):
    """`from_space` of a distance whose square is the space's value."""
    return np.sqrt(np.maximum(value, 0.0))


@keras.saving.register_keras_serializable(package="halo")
class Bounded(keras.constraints.Constraint):
    """Keeps a weight in an interval: the optimiser clips it after every step. The forward pass and
    the gradient stay those of the free weight, as in the papers."""

    def __init__(self, minimum=None, maximum=None):
        self.minimum, self.maximum = minimum, maximum

    def __call__(self, w):
        w = w if self.minimum is None else ops.maximum(w, ops.cast(self.minimum, w.dtype))
        return w if self.maximum is None else ops.minimum(w, ops.cast(self.maximum, w.dtype))

    def get_config(self):
        return {"minimum": self.minimum, "maximum": self.maximum}


def add_scale_and_shift(layer, scale, shift):
    """Gives a layer the learned scalars `scale` > 0 and `shift` of a logit −scale · x + shift.
    Raises ValueError if the initial scale is not positive."""
    if not scale > 0:
        raise ValueError(f"`scale` must be positive; received {scale}")
    layer.scale = layer.add_weight(
        shape=(),
        initializer=keras.initializers.Constant(float(scale)),
        constraint=Bounded(minimum=1e-3),
        name="scale",
    )
    layer.shift = layer.add_weight(
        shape=(), initializer=keras.initializers.Constant(float(shift)), name="shift"
    )


class Plain(Similarity):
    """Base of those that are their `function`, or minus it where it is a distance."""

    def call(self, images, captions):
        value = type(self).function(images, captions)
        return -value if self.is_distance else value


class ScaledSimilarity(Similarity):
    """Base of the closed forms −scale · distance + shift with both learned, from these initial
    values."""

    def __init__(self, scale, shift, **kwargs):
        super().__init__(**kwargs)
        add_scale_and_shift(self, scale, shift)

    def scorer(self):
        """The function from a search space's values to logits; None if no space ranks as this
        similarity does."""
        if self.from_space is None:
            return None
        scale, shift = float(self.scale), float(self.shift)
        return lambda value: shift - scale * self.from_space(value)


@keras.saving.register_keras_serializable(package="halo")
class AverageSimilarity(Similarity):
    """The mean of similarities of the same embeddings, such as SGRAF's of its two parts.

    ```python
    images, captions = np.array([[0.0, 1.0]]), np.array([[0.6, 0.8], [1.0, 0.0]])
    parts = [zoo.similarities.Cosine(), zoo.similarities.EuclideanDistance()]
    zoo.similarities.AverageSimilarity(parts)(images, captions)  # (1, 2)
    ```

    Args:
        parts: similarity layers, at least one (else a ValueError), of one unit.
    Reference: SGRAF (Diao et al., AAAI 2021), section 4.2, of models that were trained apart.
    """

    identifier = "average"
    needs_model = True

    def __init__(self, parts, **kwargs):
        super().__init__(**kwargs)
        self.parts = list(parts)
        if not self.parts:
            raise ValueError("`parts` must hold at least one similarity; received none")
        kinds = (set(getattr(part, "embeddings", ())) for part in self.parts)
        self.embeddings = tuple(sorted(set.intersection(*kinds)))

    def call(self, images, captions, training=None):
        total = sum(part(images, captions, training=training) for part in self.parts)
        return total / len(self.parts)

    def get_config(self):
        parts = [keras.saving.serialize_keras_object(part) for part in self.parts]
        return {**super().get_config(), "parts": parts}

    @classmethod
    def from_config(cls, config):
        parts = [keras.saving.deserialize_keras_object(part) for part in config["parts"]]
        return cls(**{**config, "parts": parts})
