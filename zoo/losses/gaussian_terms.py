"""Terms on Gaussians: inclusion, mutual likelihood, KL to the standard normal, ambiguity."""

from typing import Any

import keras
from keras import ops

from zoo.embeddings import Embedding, EmbeddingLike, Tensor, gaussian
from zoo.embeddings.numerics import gaussian_rows
from zoo.losses.base import Auxiliary, choice, mean_over, positive

_LOG_2 = 0.6931471805599453
_LARGEST = 60.0  # an exponent whose square in a gradient is a finite float32
REDUCTIONS = ("sum", "mean", "mean_per_dimension")


def inclusion(inner: EmbeddingLike, outer: EmbeddingLike) -> Tensor:
    """How much of each Gaussian lies inside of another: mean over dim of log ∫ p²_inner p_outer.

    ```python
    narrow = {"mean": np.zeros((1, 4)), "log_variance": np.full((1, 4), -2.0)}
    wide = {"mean": np.zeros((1, 4)), "log_variance": np.zeros((1, 4))}
    zoo.losses.inclusion(narrow, wide) > zoo.losses.inclusion(wide, narrow)  # True
    ```

    Returns:
        float32 `(batch,)` in nats a dimension, of Gaussians `(batch, dim)`, row by row.

    Raises:
        ValueError: if they are no Gaussians, or not as many.
    Reference: ProLIP (Chun et al., ICLR 2025), the inclusion hypothesis.
    Released code differs: it takes −2 log σ² − log σ² of the two, which are the weights of log σ;
        half of that belongs to log σ², or scaling both Gaussians alike changes the comparison.
    """
    (mean, log), (other_mean, other_log) = gaussian_rows(inner, outer, ("inner", "outer"))
    # ∫ exp(−(z−m)²/s − (z−n)²/2t) dz, s and t the variances: 1/s + 1/2t = (2t + s)/2st.
    # In logarithms, since the gradient of a quotient divides by total², which underflows.
    log_total = ops.logaddexp(_LOG_2 + other_log, log)
    exponent = -ops.square(mean - other_mean) * ops.exp(ops.minimum(-log_total, _LARGEST))
    # log: −log 2πs − ½ log 2πt + ½ log π + ½ log(2st / (2t + s))
    constant = -1.8378770664093453  # −log 2π
    return ops.mean(exponent - 0.5 * log - 0.5 * log_total + constant, axis=-1)


def inclusion_loss(inner, outer, scale):
    """−log σ(scale · (inclusion of inner in outer − of outer in inner)), mean over pairs."""
    difference = inclusion(inner, outer) - inclusion(outer, inner)
    return ops.mean(ops.softplus(-scale * difference))


@keras.saving.register_keras_serializable(package="halo")
class Inclusion(Auxiliary):
    """−log σ(scale · (inclusion of images in captions − of captions in images)), mean over pairs.

    A caption says less than its picture shows, so its Gaussian is to include the picture's. Row i
    of the images belongs to row i of the captions, as in batches of `image_caption_pairs`.

    ```python
    narrow = {"mean": np.zeros((1, 4)), "log_variance": np.full((1, 4), -2.0)}
    wide = {"mean": np.zeros((1, 4)), "log_variance": np.zeros((1, 4))}
    zoo.losses.Inclusion(scale=1.0)(narrow, wide)  # less than the other way round
    ```

    Args:
        weight, name: of `Auxiliary`.
        scale: of the comparison; ProLIP takes 1000.

    Raises:
        ValueError: if there are not as many images as captions, or the scale is not positive.
    Reference: ProLIP (Chun et al., ICLR 2025), section on the inclusion loss.
    """

    def __init__(
        self, weight: float = 1e-7, scale: float = 1000.0, name: str = "inclusion", **kwargs: Any
    ):
        super().__init__(weight, name, **kwargs)
        self.scale = positive("scale", scale)

    def call(self, images: Embedding, captions: Embedding) -> Tensor:
        return inclusion_loss(images, captions, self.scale)


def mutual_likelihood(images: EmbeddingLike, captions: EmbeddingLike) -> Tensor:
    """log ∫ p_i(z) q_i(z) dz of each pair, a mean over dimensions.

    −½ mean_d [ log 2π + log(σ_v² + σ_t²) + (μ_v − μ_t)² / (σ_v² + σ_t²) ]

    Returns:
        float32 `(batch,)` in nats a dimension, of Gaussians `(batch, dim)`, row by row.

    Raises:
        ValueError: if they are no Gaussians, or not as many.
    Relations: the diagonal of `zoo.similarities.log_expected_likelihood` over dim. At given means
        it is greatest where σ_v² + σ_t² = (μ_v − μ_t)²: the variances of a pair add up to the
        squared distance of its means, dimension by dimension.
    Reference: Shi and Jain, "Probabilistic Face Embeddings", ICCV 2019, equation 3.
    """
    names = ("images", "captions")
    (mean, log), (other_mean, other_log) = gaussian_rows(images, captions, names)
    log_total = ops.logaddexp(log, other_log)
    quadratic = ops.square(mean - other_mean) * ops.exp(-log_total)
    constant = 1.8378770664093453  # log 2π
    return -0.5 * (ops.mean(log_total + quadratic, axis=-1) + constant)


@keras.saving.register_keras_serializable(package="halo")
class MutualLikelihood(Auxiliary):
    """−`mutual_likelihood`, mean over the pairs of a batch.

    It makes Σσ² of an image and of its caption add up to the squared distance that pairs like them
    have: an item whose matches lie far and wide is uncertain. Over frozen means that is all it does
    (`zoo.models.pfe`). Row i of the images belongs to row i of the captions, as in batches of
    `image_caption_pairs` and `class_pairs`; else a ValueError.

    ```python
    points = {"mean": np.eye(2), "log_variance": np.full((2, 2), -2.0)}
    zoo.losses.MutualLikelihood()(points, points)
    ```

    Reference: Shi and Jain, "Probabilistic Face Embeddings", ICCV 2019, equation 4.
    """

    def __init__(self, weight: float = 1.0, name: str = "mutual_likelihood", **kwargs: Any):
        super().__init__(weight, name, **kwargs)

    def call(self, images: Embedding, captions: Embedding) -> Tensor:
        return -ops.mean(mutual_likelihood(images, captions))


def kl_to_standard_normal(embedding: EmbeddingLike) -> Tensor:
    """KL(N(μ, σ²) ‖ N(0, I)) = ½ Σ_d (μ² + σ² − 1 − log σ²) ≥ 0 in nats: float32 `(batch,)` of a
    Gaussian `(batch, dim)`, else a ValueError.

    Relations: TFP's `kl_divergence` of the two distributions; the rate of the variational
        information bottleneck.
    Released code differs: PCME puts its head's log σ where log σ² belongs, and the mean of the
        drawn samples where μ belongs.
    """
    mean, log_variance = gaussian(embedding)
    return 0.5 * ops.sum(ops.square(mean) + ops.exp(log_variance) - 1.0 - log_variance, axis=-1)


@keras.saving.register_keras_serializable(package="halo")
class KLRegularizer(Auxiliary):
    """KL to N(0, I) of the images plus that of the captions, in nats.

    ```python
    gaussians = {name: np.zeros((4, 8), "float32") for name in ("mean", "log_variance")}
    zoo.losses.KLRegularizer()(gaussians, gaussians)  # 0.0, they are N(0, I)
    ```

    Args:
        weight, name: of `Auxiliary`; the weight is β.
        reduction: over the items of each modality: `"mean"`, of KL divergences that are summed
            over dim; `"sum"`, PCME's, beside a loss that is a sum as well; `"mean_per_dimension"`,
            `"mean"` divided by dim, PCME++'s mean over items and dimensions.

    Raises:
        ValueError: if `reduction` is another, or an embedding is not a Gaussian.
    Reference: PCME (Chun et al., CVPR 2021) section 3.2; PCME++ (Chun, ICLR 2024) section 2.2 and
        figure A.1; deep VIB (Alemi et al., ICLR 2017).
    Released code differs: the totals of PCME and PCME++ count the matching loss twice and this
        term once, so β is half as strong as printed (`MatchingCrossentropy(pair_weight=2)`).
    """

    def __init__(
        self, weight: float = 1e-4, reduction: str = "mean", name: str = "kl", **kwargs: Any
    ):
        super().__init__(weight, name, **kwargs)
        self.reduction = choice("reduction", reduction, REDUCTIONS)

    def call(self, images: Embedding, captions: Embedding) -> Tensor:
        return self._reduce(images) + self._reduce(captions)

    def _reduce(self, embedding):
        """The divergences (batch,) to one number, by `reduction`."""
        divergence = kl_to_standard_normal(embedding)
        if self.reduction == "sum":
            return ops.sum(divergence)
        if self.reduction == "mean":
            return ops.mean(divergence)
        return ops.mean(divergence) / embedding["mean"].shape[-1]


_NEVER = -1e9  # log weight of a caption that does not count


@keras.saving.register_keras_serializable(package="halo")
class Ambiguity(Auxiliary):
    """Makes Σσ² of an item grow with the number of other captions that lie near its mean.

    mean over items q of [(log Σσ_q² − a) − slope · (log n_q − b)]², with
    n_q = Σ_c exp(cos(μ_q, μ_c) / temperature)

    over the batch's captions c that do not match q, and a, b the batch's means of log Σσ² and of
    log n. The images' mean and the captions' mean are added. n_q is a target: no gradient reaches
    the means. Only differences between items are learnt, so another term has to set the level of
    the variances, such as `MutualLikelihood`. A likelihood of pairs and the matching loss see only
    the own photo of a caption, not the number of photos that fit.

    ```python
    means = np.array([[1, 0], [1, 0.1], [0, 1], [1, 0.2]], "float32")
    same = {"mean": means, "log_variance": np.zeros((4, 2), "float32")}
    zoo.losses.Ambiguity()(same, same, matches=np.eye(4, dtype="float32"))
    ```

    Args:
        weight, name: of `Auxiliary`.
        temperature: width of the kernel, in cosines.
        slope: what log Σσ² grows by where log n grows by one. A large slope lets the variances
            decide ranks: CSD adds Σσ² to every distance.
    Call arguments: Gaussians of images and captions; matches `(N, M)`, above 0 where they match.
        Two captions match where they match the same image. Matches do not count in n: the captions
        of one photo say how alike its authors write. Items that match all captions are left out.

    Raises:
        ValueError: if a side is no Gaussian, or the temperature or the slope is not above 0.
    Relations: n is a kernel density of captions, up to a factor, by von Mises' and Fisher's kernel.
    Reference: none; measured beside PCME++'s pseudo-positives and ProLIP's inclusion in
        docs/results/ambiguity.md.
    """

    reads = ("matches",)

    def __init__(
        self,
        weight: float = 100.0,
        temperature: float = 0.08,
        slope: float = 0.1,
        name: str = "ambiguity",
        **kwargs: Any,
    ):
        super().__init__(weight, name, **kwargs)
        self.temperature = positive("temperature", temperature)
        self.slope = positive("slope", slope)

    def call(self, images: Embedding, captions: Embedding, matches: Tensor) -> Tensor:
        matches = ops.cast(ops.convert_to_tensor(matches) > 0, "float32")
        alike = ops.matmul(ops.transpose(matches), matches) > 0
        (image_means, image_logs), (means, logs) = (
            gaussian(images, "images"),
            gaussian(captions, "captions"),
        )
        others = _unit(means)
        of_images = self._error(_unit(image_means), image_logs, others, matches > 0)
        return of_images + self._error(others, logs, others, alike)

    def _error(self, queries, log_variance, others, is_own):
        """Mean squared difference of each query's log trace and its log number of near others, both
        centred; the query's own items do not count."""
        cosines = ops.matmul(queries, ops.transpose(others))
        logits = ops.where(is_own, _NEVER, cosines / self.temperature)
        log_count = ops.stop_gradient(ops.logsumexp(logits, axis=1))
        counts = ops.cast(ops.logical_not(ops.all(is_own, axis=1)), "float32")
        error = ops.logsumexp(log_variance, axis=1) - self.slope * log_count
        error = error - mean_over(error, counts)
        return mean_over(ops.square(error), counts)


def _unit(means):
    """Means of unit length, (batch, dim), without a gradient."""
    means = ops.stop_gradient(means)
    return ops.normalize(means, axis=-1)
