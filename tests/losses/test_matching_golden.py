"""Matching losses against the official codes, values and gradients, the relation stated."""

import numpy as np
import pytest
from keras import ops

import zoo
from gradients import value_and_gradients
from loss_loops import close
from zoo import losses, similarities
from zoo.similarities.sampled import sampled_logit

EYE = np.eye(8, dtype="float32")


@pytest.mark.parametrize("setting", ["coco", "cub", "plain", "offset"])
def test_pcme(golden, setting):
    """Released total = 2 · sum + β · KL + λ · uniformity, where sigmoid(2x) makes our scale 2a and
    shift 2b, μ of the KL is the mean of the samples and its log σ² the head's log σ."""
    arrays = golden("pcme_mc_soft_contrastive")
    read = {k.removeprefix(f"{setting}_"): v for k, v in arrays.items() if k.startswith(setting)}
    matches = np.eye(len(arrays["image_samples"]), dtype="float32")
    matching = losses.MatchingCrossentropy(reduction="sum", pair_weight=2)
    kl = losses.KLRegularizer(reduction="sum")

    def gaussian(samples, log_sigma):
        return {"mean": ops.mean(samples, axis=1), "log_variance": log_sigma}

    def total(images, captions, image_log_sigma, caption_log_sigma, a, b):
        logits = sampled_logit(images, captions, 2 * a, 2 * b)
        value = matching(matches, logits)
        value += read["vib_beta"] * kl(
            gaussian(images, image_log_sigma), gaussian(captions, caption_log_sigma)
        )
        samples = ops.concatenate([ops.reshape(x, (-1, 16)) for x in (images, captions)])
        return value + read["uniform_lambda"] * losses.uniformity(samples)

    names = ["image_samples", "caption_samples", "image_logsigma", "caption_logsigma"]
    scale = [np.float32(read[name]) for name in "ab"]
    value, gradients = value_and_gradients(total, *(arrays[name] for name in names), *scale)
    close(value, read["loss"])
    for name, gradient in zip([*names, "negative_scale", "shift"], gradients, strict=True):
        close(np.ravel(gradient), np.ravel(read[f"grad_{name}"]), rtol=2e-3, atol=5e-4)


def test_pcme_pieces(golden):
    """The negative log-likelihood of one pair is our cross-entropy on the logit of the averaged
    probability (labels ±1, sigmoid(2x)); KL summed over the batch; uniformity is the same."""
    arrays = golden("pcme_pieces")
    x = 2 * arrays["nll_logit"].astype("float64")
    matching = -np.log(np.mean(1 / (1 + np.exp(-x)), axis=1))
    other = -np.log(np.mean(1 / (1 + np.exp(x)), axis=1))
    labels = (arrays["nll_matched"] > 0).astype("float32")
    logits = (other - matching).astype("float32")
    value = [
        losses.MatchingCrossentropy()(label.reshape(1, 1), logit.reshape(1, 1))
        for label, logit in zip(labels, logits, strict=True)
    ]
    close(value, arrays["nll_out"])
    embedding = {"mean": arrays["kl_mu"], "log_variance": arrays["kl_logsigma"]}
    close(ops.sum(losses.kl_to_standard_normal(embedding)), arrays["kl_out"])
    close(losses.uniformity(arrays["uniform_x"]), arrays["uniform_out"])


CASES = [
    *((label, part) for label in ("eye", "smooth", "mixed", "dup") for part in ("match", "pp")),
    *((label, "full") for label in ("eye", "smooth", "mixed", "dup")),
    ("eye", "vib"),
    ("eye", "wdist"),
]


@pytest.mark.parametrize(("label", "part"), CASES)
def test_pcmepp(golden, label, part):
    """Released total = ours with `pair_weight=2`, the paper's α = 0.1 and β, VIB averaged over
    items and dimensions; `wdist` puts the squared Wasserstein distance in the place of CSD. The
    losses are those of `zoo.models.pcmepp`, so that its defaults are what is compared."""
    arrays = golden("pcmepp_closed_form_loss")
    model = zoo.models.pcmepp("tiny", vocabulary_size=4, dim=16, image_size=16, pair_weight=2)
    (kl,) = model.auxiliaries
    alone = losses.MatchingCrossentropy(pair_weight=2)
    matching = model.loss if part in ("pp", "full") else alone

    def total(image_mean, caption_mean, image_log, caption_log, a, b):
        images = {"mean": image_mean, "log_variance": image_log}
        captions = {"mean": caption_mean, "log_variance": caption_log}
        if part == "wdist":
            distance = similarities.wasserstein_2(images, captions, squared=True)
        else:
            distance = similarities.closed_form_sampled_distance(images, captions)
        value = matching(arrays[f"label_{label}"], b - a * distance)
        return value + (kl.weight * kl(images, captions) if part in ("vib", "full") else 0.0)

    names = ["image_mean", "caption_mean", "image_logvar", "caption_logvar"]
    scale = [np.float32(5.0), np.float32(5.0)]
    value, gradients = value_and_gradients(total, *(arrays[name] for name in names), *scale)
    close(value, arrays[f"{label}_{part}_loss"])
    for name, gradient in zip([*names, "negative_scale", "shift"], gradients, strict=True):
        close(np.ravel(gradient), np.ravel(arrays[f"{label}_{part}_grad_{name}"]), rtol=1e-3)


@pytest.mark.parametrize("label", ["eye", "smooth", "mixed", "dup"])
def test_pcmepp_pseudo_positives(golden, label):
    arrays = golden("pcmepp_closed_form_loss")
    matches, logits = arrays[f"label_{label}"], arrays["logit"]
    rows = losses.with_pseudo_positives(matches, logits)
    columns = losses.with_pseudo_positives(matches.T, logits.T)
    np.testing.assert_array_equal(rows, arrays[f"relabel_{label}_i2t"])
    np.testing.assert_array_equal(columns, arrays[f"relabel_{label}_t2i"])


@pytest.mark.parametrize("label", ["eye", "dup"])
def test_pcme_of_the_pcmepp_repository(golden, label):
    """Again twice our sum, scale and shift 2 · 5; several matches a row are allowed."""
    arrays = golden("pcmepp_repo_pcme_and_infonce")
    matching = losses.MatchingCrossentropy(reduction="sum")
    value, gradients = value_and_gradients(
        lambda images, captions: (
            2 * matching(arrays[f"label_{label}"], sampled_logit(images, captions, 10.0, 10.0))
        ),
        arrays["image_samples"],
        arrays["caption_samples"],
    )
    close(value, arrays[f"{label}_loss_x2"])
    close(gradients[0], arrays[f"{label}_grad_image"], rtol=1e-3, atol=1e-4)
    close(gradients[1], arrays[f"{label}_grad_caption"], rtol=1e-3, atol=1e-4)
    gaussian = {"mean": arrays["image_mean"], "log_variance": arrays["image_logvar"]}
    mean_kl = np.mean(losses.kl_to_standard_normal(gaussian)) / gaussian["mean"].shape[1]
    close(mean_kl, arrays["kl_mean_image"])


def test_infonce(golden):
    """The same value; τ multiplies the cosine."""
    arrays = golden("pcmepp_repo_pcme_and_infonce")
    value, gradients = value_and_gradients(
        lambda images, captions, scale: losses.InfoNCE()(
            EYE, scale * ops.matmul(images, ops.transpose(captions))
        ),
        arrays["image_mean"],
        arrays["caption_mean"],
        np.float32(arrays["infonce_tau"]),
    )
    close(value, arrays["infonce_loss"])
    for gradient, name in zip(gradients, ("image", "caption", "tau"), strict=True):
        close(np.ravel(gradient), np.ravel(arrays[f"infonce_grad_{name}"]))
