"""Parity with the official codes, values and gradients; every test states the relation."""

import numpy as np
import pytest
from gradients import value_and_gradients
from keras import ops

from zoo import losses, similarities
from zoo.similarities.sampled import sampled_logit

EYE = np.eye(8, dtype="float32")


def close(received, expected, rtol=1e-4, atol=1e-5):
    np.testing.assert_allclose(received, expected, rtol=rtol, atol=atol)


@pytest.mark.parametrize("setting", ["coco", "cub", "plain", "offset"])
def test_pcme(golden, setting):
    """Released total = 2 · sum + β · KL + λ · uniformity, where sigmoid(2x) makes our scale 2a and
    shift 2b, μ of the KL is the mean of the samples and its log σ² the head's log σ."""
    arrays = golden("pcme_mc_soft_contrastive")
    read = {k.removeprefix(f"{setting}_"): v for k, v in arrays.items() if k.startswith(setting)}
    matches = np.eye(len(arrays["image_samples"]), dtype="float32")
    matching = losses.MatchingCrossentropy(reduction="sum")
    kl = losses.KLRegularizer(reduction="sum")

    def gaussian(samples, log_sigma):
        return {"mean": ops.mean(samples, axis=1), "log_variance": log_sigma}

    def total(images, captions, image_log_sigma, caption_log_sigma, a, b):
        logits = sampled_logit(images, captions, 2 * a, 2 * b)
        value = 2 * matching(matches, logits)
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
    """Released total = 2 · ours (so α/2 here for their undoubled α = 0.1) + β · KL, averaged over
    dimensions; `wdist` puts the squared Wasserstein distance in the place of CSD."""
    arrays = golden("pcmepp_closed_form_loss")
    weight = 0.05 if part in ("pp", "full") else 0.0
    matching = losses.MatchingCrossentropy(pseudo_positive_weight=weight)
    kl = losses.KLRegularizer(reduction="mean_per_dimension")

    def total(image_mean, caption_mean, image_log, caption_log, a, b):
        images = {"mean": image_mean, "log_variance": image_log}
        captions = {"mean": caption_mean, "log_variance": caption_log}
        if part == "wdist":
            distance = similarities.wasserstein_2(images, captions, squared=True)
        else:
            distance = similarities.closed_form_sampled_distance(images, captions)
        value = 2 * matching(arrays[f"label_{label}"], b - a * distance)
        return value + (1e-4 * kl(images, captions) if part in ("vib", "full") else 0.0)

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


@pytest.mark.parametrize(("mining", "name"), [("sum", "sum"), ("hardest", "max")])
def test_vsepp(golden, mining, name):
    """The same value: the sum over the batch of both directions, margin 0.2 (order embeddings:
    0.05, of which we read the scores)."""
    arrays = golden("vsepp_triplet")
    loss = losses.TripletRanking(0.2, mining)
    value, gradients = value_and_gradients(
        lambda images, captions: loss(EYE, ops.matmul(images, ops.transpose(captions))),
        arrays["image"],
        arrays["caption"],
    )
    close(value, arrays[f"{name}_loss"])
    close(gradients[0], arrays[f"{name}_grad_image"])
    close(gradients[1], arrays[f"{name}_grad_caption"])
    order = losses.TripletRanking(0.05, mining)(EYE, arrays[f"order_{name}_scores"])
    close(order, arrays[f"order_{name}_loss"])
    if mining == "hardest":
        close(value, arrays["vse_infty_max_loss"])


@pytest.mark.parametrize(("mining", "name"), [("sum", "sum"), ("hardest", "max")])
def test_pvse(golden, mining, name):
    """Ranking: our mean, times (N − 1)/N for all hinges, since theirs counts the zeroed diagonal.
    MMD: `squared=False`. Their diversity is a Gram matrix's norm on the residuals, not ours. The
    sets come normalised, so the gradient is that of products, not of cosines."""
    arrays = golden("pvse_mil_loss")
    loss = losses.TripletRanking(0.1, mining, "mean")
    share = 7 / 8 if mining == "sum" else 1.0

    def parts(images, captions):
        logits = ops.max(ops.einsum("nkd,mld->nmkl", images, captions), axis=(2, 3))
        ranking = share * loss(EYE, logits)
        discrepancy = losses.maximum_mean_discrepancy(images, captions, 0.5, squared=False)
        return ranking, discrepancy

    sets = arrays["image_sets"], arrays["caption_sets"]
    ranking, discrepancy = parts(*sets)
    close(ranking, arrays[f"{name}_ranking"])
    close(discrepancy, arrays[f"{name}_mmd"])
    _, gradients = value_and_gradients(lambda *s: sum_of(*parts(*s), 0.01), *sets)
    close(gradients[0], arrays[f"{name}_grad_image"], rtol=1e-3)
    close(gradients[1], arrays[f"{name}_grad_caption"], rtol=1e-3)


def sum_of(loss, auxiliary, weight):
    return loss + weight * auxiliary


def smooth_chamfer_of_products(images, captions, alpha=16.0):
    products = alpha * ops.einsum("nkd,mld->nmkl", images, captions)
    rows = ops.mean(ops.logsumexp(products, axis=3), axis=2)
    columns = ops.mean(ops.logsumexp(products, axis=2), axis=2)
    return (rows + columns) / (2 * alpha)


@pytest.mark.parametrize(
    ("name", "margin", "mining"),
    [("hard", 0.2, "hardest"), ("hard_m01", 0.1, "hardest"), ("mean", 0.2, "sum")],
)
def test_dive(golden, name, margin, mining):
    """The same total: our mean on smooth-Chamfer + 0.01 · MMD (`squared=False`) + 0.01 · diversity
    of the slots (their `unif`). Their sets come normalised, so the gradient is that of
    products, not of cosines. Their "semi-hard" is another loss, see `TripletRanking`."""
    arrays = golden("dive_loss")
    matches = np.kron(np.eye(5), np.ones((1, 5))).astype("float32")
    ranking = losses.TripletRanking(margin, mining, "mean")
    terms = losses.MeanDiscrepancy(squared=False), losses.Diversity()
    names = "image_sets", "caption_sets", "image_slots", "caption_slots"

    def embed(sets, slots):
        return {"elements": sets, "slots": slots}

    def total(images, captions, image_slots, caption_slots):
        both = embed(images, image_slots), embed(captions, caption_slots)
        value = ranking(matches, smooth_chamfer_of_products(images, captions))
        return value + sum(term.weight * term(*both) for term in terms)

    value, gradients = value_and_gradients(total, *(arrays[name] for name in names))
    close(value, arrays[f"{name}_loss"])
    for gradient, which in zip(
        gradients, ("image", "caption", "image_residual", "caption_residual"), strict=True
    ):
        close(gradient, arrays[f"{name}_grad_{which}"], rtol=1e-3)
    discrepancy = losses.maximum_mean_discrepancy(
        {"elements": arrays["image_sets"]}, {"elements": arrays["caption_sets"]}, squared=False
    )
    close(discrepancy, arrays[f"{name}__mmd_loss"])
    close(losses.diversity(arrays["image_slots"]), arrays["uniformity_image"])


@pytest.mark.parametrize(("temperature", "tag"), [(0.01, "t001"), (0.001, "t0001")])
def test_daa_of_the_paper(golden, temperature, tag):
    """One minus the mean of both directions' ASP (written independently of the released code)."""
    arrays = golden("daa")
    loss = losses.SemanticPrecision(temperature)
    both = [arrays[f"numpy_paper_asp_{direction}_{tag}"] for direction in ("i2t", "t2i")]
    close(1 - loss(arrays["sem"], arrays["scores"]), np.mean(both), rtol=1e-6)
    symmetric = 1 - loss(arrays["sym_sem"], arrays["sym_scores"])
    close(symmetric, arrays[f"numpy_paper_asp_sym_{tag}"], rtol=1e-6)


def test_daa_as_released(golden):
    """Released = 25 · ours (τ = 0.001) on a symmetric matrix. On others it compares S[a, b] with
    S[b, c], a row with a column, which is no rank of either; ours is the paper's there."""
    arrays = golden("daa")
    loss = losses.SemanticPrecision(0.001)
    close(25 * loss(arrays["sym_sem"], arrays["sym_scores"]), arrays["sgraf_daa_sym"])

    def released_ranks(matrix):
        difference = (matrix[:, :, None] - matrix[None]) / 0.001  # a, b, c
        steps = 0.5 * (1 + np.tanh(0.5 * difference)) * (1 - np.eye(len(matrix)))[:, None]
        return 1 + steps.sum(0)

    ranks = [released_ranks(arrays[name].astype("float64")) for name in ("sem", "scores")]
    released = 25 * np.mean(1 - np.minimum(*ranks) / np.maximum(*ranks))
    close(released, arrays["sgraf_daa_i2t"])
    ours = 25 * float(loss(arrays["sem"], arrays["scores"]))
    assert abs(ours - released) > 0.1


def test_smooth_ap(golden):
    """Released = 25 · (1 − AP) of the rows alone, τ = 0.001; ours is the mean with the columns'."""
    arrays = golden("daa")
    loss = losses.SmoothAveragePrecision(0.001)
    matches = np.eye(16, dtype="float32")
    value, gradients = value_and_gradients(
        lambda scores: 25 * loss._direction(matches, scores), arrays["scores"]
    )
    close(value, arrays["sgraf_smoothap_i2t"])
    close(gradients[0], arrays["sgraf_smoothap_grad"], rtol=1e-3, atol=1e-4)
    both = loss._direction(matches, arrays["scores"]) + loss._direction(matches, arrays["scores"].T)
    close(loss(matches, arrays["scores"]), 0.5 * both)
