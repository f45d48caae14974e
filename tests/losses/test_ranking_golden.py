"""Ranking losses against the official codes, values and gradients, the relation stated."""

import numpy as np
import pytest
from keras import ops

from gradients import value_and_gradients
from loss_loops import close
from zoo import losses

EYE = np.eye(8, dtype="float32")


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
    MMD: `squared=False`. Diversity, the Gram matrix's norm, reads the residuals. The sets come
    normalised, so the gradient is that of products, not of cosines."""
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
    slots = [{"elements": arrays[f"{side}_residual"]} for side in ("image", "caption")]
    diversity = losses.OrthogonalDiversity()(*slots)
    close(diversity, arrays[f"{name}_div"])
    close(ranking + 0.01 * discrepancy + 0.1 * diversity, arrays[f"{name}_loss"])
    _, gradients = value_and_gradients(lambda *s: sum_of(*parts(*s), 0.01), *sets)
    close(gradients[0], arrays[f"{name}_grad_image"], rtol=1e-3)
    close(gradients[1], arrays[f"{name}_grad_caption"], rtol=1e-3)
    for side in ("image", "caption"):
        residual = arrays[f"{side}_residual"]
        _, (gradient,) = value_and_gradients(
            lambda r: 0.1 * losses.orthogonal_diversity(r), residual
        )
        close(gradient, arrays[f"{name}_grad_{side}_residual"], rtol=1e-3)


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
    terms = losses.MaximumMeanDiscrepancy(squared=False), losses.Diversity()
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


@pytest.mark.parametrize(("temperature", "tag"), [(0.01, "t001"), (0.001, "t0001")])
def test_each_direction_of_daa_ranks_its_own_lists(golden, temperature, tag):
    """Of the asymmetric matrix, where rows and columns differ, and so do both directions' ASP. A
    single query beside lists of one item, which are always in order, has half of the loss."""
    arrays = golden("daa")
    loss = losses.SemanticPrecision(temperature)
    pair = np.stack([arrays["sem"], arrays["scores"]])
    assert np.abs(pair - pair.swapaxes(1, 2)).max() > 0.1
    images = np.mean([1 - 2 * loss(*pair[:, [row]]) for row in range(16)])
    captions = np.mean([1 - 2 * loss(*pair[:, :, [column]]) for column in range(16)])
    expected = [arrays[f"numpy_paper_asp_{direction}_{tag}"] for direction in ("i2t", "t2i")]
    close([images, captions], expected, rtol=1e-5)
    assert abs(expected[0] - expected[1]) > 1e-4  # ten times the tolerance


def test_daa_as_released(golden):
    """Released = 25 · ours (τ = 0.001) for each direction on a symmetric matrix; it adds both, so
    that ours has twice its weight. On others it compares S[a, b] with S[b, c], a row with a
    column, which is no rank of either; ours is the paper's there."""
    arrays = golden("daa")
    loss = losses.SemanticPrecision(0.001)
    close(25 * loss(arrays["sym_sem"], arrays["sym_scores"]), arrays["sgraf_daa_sym"])
    both = arrays["sgraf_daa_i2t"] + arrays["sgraf_daa_t2i"]
    close(arrays["sgraf_total"][0], arrays["sgraf_contrastive"] + both)

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
        lambda scores: 25 * loss.of_rows(matches, scores), arrays["scores"]
    )
    close(value, arrays["sgraf_smoothap_i2t"])
    close(gradients[0], arrays["sgraf_smoothap_grad"], rtol=1e-3, atol=1e-4)
    both = loss.of_rows(matches, arrays["scores"]) + loss.of_rows(matches, arrays["scores"].T)
    close(loss(matches, arrays["scores"]), 0.5 * both)
