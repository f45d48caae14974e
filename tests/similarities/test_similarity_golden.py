"""Parity with the official codes; where they differ from the mathematics, the relation."""

import numpy as np
import pytest
from scipy.special import expit

from gradients import value_and_gradients
from zoo import similarities as S
from zoo.similarities.sampled import reparameterize, sampled_logit


def pair(g, mean="mu", log="logsigma", times=2.0):
    """Both Gaussians of a file; PCME's `logsigma` is log σ, half our log σ²."""
    return tuple(
        {"mean": g[f"{side}_{mean}"], "log_variance": times * g[f"{side}_{log}"]}
        for side in ("image", "caption")
    )


def close(actual, expected, rtol=1e-4, atol=1e-5):
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)


def test_divergences(golden):
    g = golden("gaussian_divergences")
    images, captions = pair(g, log="logstd")
    close(S.kl_divergence(images, captions), g["kl"])
    close(S.reverse_kl_divergence(images, captions), g["reverse_kl"])
    close(S.min_kl_divergence(images, captions), g["min_kl"])
    close(2 * S.jeffreys_divergence(images, captions), g["jeffreys"])  # there the sum, not the mean
    close(S.wasserstein_2(images, captions, squared=True), g["w2_squared"])
    close(S.bhattacharyya_distance(images, captions), g["bhattacharyya"])
    close(S.log_expected_likelihood(images, captions), g["elk"])
    close(S.closed_form_sampled_distance(images, captions), g["expected_sq_distance"])


def test_pcme_test_time_distances(golden):
    g = golden("pcme_eval_distances")
    images, captions = pair(g)
    dim = images["mean"].shape[1]
    close(-S.wasserstein_2(images, captions, squared=True), g["dist_wasserstein"])
    close(-S.bhattacharyya_distance(images, captions), g["dist_bhattacharyya"])
    # As released: the constant of the log likelihood is left out.
    elk = S.log_expected_likelihood(images, captions)
    close(elk + 0.5 * dim * np.log(2 * np.pi), g["dist_elk"])
    # As released: both "JS" and KL without halves and −1, and the log term with its sign reversed.
    close(-4 * S.jeffreys_divergence(images, captions) - 2 * dim, g["dist_js"], atol=1e-3)
    log_ratio = captions["log_variance"].sum(1) - images["log_variance"].sum(1)[:, None]
    kl, reverse = S.kl_divergence(images, captions), S.reverse_kl_divergence(images, captions)
    close(-2 * kl - dim + 2 * log_ratio, g["dist_kl"], atol=1e-3)
    close(-2 * reverse - dim - 2 * log_ratio, g["dist_reverse_kl"], atol=1e-3)
    # With one sample each (the means) the released L2 is the squared distance.
    one = images["mean"][:, None], captions["mean"][:, None]
    close(-(np.asarray(S.average_l2(*one)) ** 2), g["dist_l2"])


@pytest.mark.parametrize("released", [5, 15])
def test_pcme_match_probability(golden, released):
    """The released p is sigmoid(2x): our scale and shift are twice its a and b."""
    g = golden("pcme_eval_distances")
    samples = g["image_samples"], g["caption_samples"]
    ours = np.asarray(S.match_probability(*samples, 2 * released, 2 * released))
    close(ours, g[f"match_prob_a{released}b{released}"], atol=2e-6)
    ranks = g[f"i2t_rank_a{released}b{released}"]
    ranked = np.take_along_axis(ours, ranks, axis=1)
    assert (np.diff(ranked, axis=1) <= 2e-6).all()


def test_pcme_pairwise_distances(golden):
    g = golden("pcme_pieces")
    ours = S.average_l2(g["cdist_a"], g["cdist_b"])
    close(np.diagonal(ours), g["cdist_out"].mean(1))


def test_pcme_sampling(golden):
    g = golden("pcme_sampling")
    close(reparameterize(g["mu"], 2 * g["logsigma"], g["eps"]), g["samples"])


def test_pcmepp_evaluation(golden):
    g = golden("pcmepp_eval")
    images, captions = pair(g, "mean", "logvar", times=1.0)
    close(-S.closed_form_sampled_distance(images, captions), g["csd_sims"])
    # As released: the sum over J × J of sigmoid(2x) at a = b = 5.
    ours = S.match_probability(g["image_samples"], g["caption_samples"], 10.0, 10.0)
    close(
        16 * expit(sampled_logit(g["image_samples"], g["caption_samples"], 10.0, 10.0)), 16 * ours
    )
    close(16 * ours, g["matching_prob_sum"])


def test_pcmepp_logits(golden):
    """What follows from them, with its gradients, is in tests/losses/test_matching_golden.py."""
    g = golden("pcmepp_closed_form_loss")
    images, captions = pair(g, "mean", "logvar", times=1.0)
    close(S.closed_form_sampled_distance(images, captions), g["csd"])
    close(S.ClosedFormSampledDistance(scale=5.0, shift=5.0)(images, captions), g["logit"])


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("smooth_chamfer_cosine_a1", lambda i, c: S.smooth_chamfer(i, c, 1.0)),
        ("smooth_chamfer_cosine_a16", S.smooth_chamfer),
        ("chamfer_cosine", S.chamfer),
        ("max_cosine", S.maximum_pair),
    ],
)
def test_dive_sets_with_gradients(golden, name, function):
    g = golden("dive_set_similarity")
    weight = np.linspace(-1, 1, g[name].size, dtype="float32").reshape(g[name].shape)
    value, (image, caption) = value_and_gradients(
        function, g["image_sets"], g["caption_sets"], weight=weight
    )
    close(value, g[name])
    # As released: unit vectors are expected and not normalised, so that its gradient has a radial
    # part, which the cosine of our definition does not feel.
    for sets, ours, side in (
        (g["image_sets"], image, "image"),
        (g["caption_sets"], caption, "caption"),
    ):
        official = g[f"{name}__grad_{side}"]
        radial = (official * sets).sum(-1, keepdims=True) * sets
        close(ours, official - radial)


def test_dive_uneven_sets(golden):
    g = golden("dive_set_similarity_uneven")
    sets = g["image_sets"], g["caption_sets"]
    close(S.smooth_chamfer(*sets), g["smooth_chamfer"])
    close(S.chamfer(*sets), g["chamfer"])
    close(S.maximum_pair(*sets), g["mil"])


def test_pvse_and_vsepp_scores(golden):
    g = golden("pvse_mil_loss")
    close(S.maximum_pair(g["image_sets"], g["caption_sets"]), g["mil_scores"])
    g = golden("vsepp_triplet")
    close(S.cosine(g["image"], g["caption"]), g["sum_scores"])
