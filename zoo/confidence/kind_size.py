"""How many items of a kind a gallery holds, seen from its vectors alone."""

import numpy as np
from scipy.special import logit

from zoo.arrays import unit

SHARE = 0.999  # of pairs of different kinds, which are less alike than the bound


def kind_size(gallery, num_items, own, same_kind, num_kinds=None):
    """The mean number of items of a kind in a gallery.

    Of the own items it is known which are of a kind. A share p₁ of these pairs and a share p₀ of
    the others is more alike than a bound. If the gallery's kinds are like them, a share
    f = p₁ π + p₀ (1 − π) of its pairs is, where π is the share of pairs of a kind. So a kind has
    1 + π (n − 1) of n items.

    Args:
        gallery: `(s, dim)`, vectors of items drawn from the gallery.
        num_items: n.
        own: `(M, dim)`, vectors of items like the gallery's.
        same_kind: `(M, M)` booleans, whether two of them are of a kind.
        num_kinds: how many kinds the own items have, where they are a sample of them, as of
            classes. None: all of a kind are there, as the captions of an image.

    Returns:
        `(size, error)`: a whole number, 1 where no two of the own items are of a kind; and about
        its relative standard error, since kinds differ in how alike their items are, and are few.
        Where vectors do not tell, as of captions that are hardly more alike within a kind, it is
        what the own items have, or for a sample what as many kinds as theirs would have here; and
        may be off by all of it.
    """
    same = same_kind & ~np.eye(len(own), dtype=bool)
    most = 1 + int(np.ceil(same.sum(axis=1).mean()))
    if not same.any() or len(gallery) < 2:
        return min(most, num_items), 0.0
    usual = most
    if num_kinds is not None:
        most, usual = num_items, max(1, round(num_items / num_kinds))
    alike, others = _cosines(own), ~same_kind
    bound = np.quantile(alike[others], SHARE) if others.any() else -1.0
    together, apart = np.mean(alike[same] > bound), 1 - SHARE
    # If kinds were as large as usual, pairs that are alike by their kind should be as many as those
    # by chance, or more.
    if (together - apart) * (usual - 1) < apart * (num_items - 1):
        return min(usual, num_items), 1.0
    found = _cosines(gallery)
    share = ((found > bound).sum() - len(found)) / (len(found) * (len(found) - 1))
    pairs = np.clip((share - apart) / max(together - apart, 1e-9), 0.0, 1.0)
    size = int(np.clip(round(1 + pairs * (num_items - 1)), 1, most))
    return size, _error(alike > bound, same, size, num_items, len(gallery))


def odds_by_number(probed):
    """By how much the log odds of a right answer rise with the logarithm of the number of items of
    a kind: of `Probed`, between half of the own items and all. 0 where each brings one."""
    half = probed.own_scores.shape[1] // 2
    if not half:
        return 0.0
    has = ~np.isnan(probed.own_scores)
    own = np.where(has, probed.own_scores, -np.inf)
    fewer = own[:, :half].max(axis=1) > probed.without.top[:, 0]
    odds = [logit(np.clip(np.mean(right), 0.001, 0.999)) for right in (probed.correct, fewer)]
    return max(0.0, (odds[0] - odds[1]) / np.log(has.sum() / has[:, :half].sum()))


def _error(is_alike, same, size, num_items, sampled):
    """Of a kind's share of alike pairs over the kinds here and there, and of counting pairs."""
    kinds = np.unique(same | np.eye(len(same), dtype=bool), axis=0).astype(np.float64)
    pairs = np.maximum(1, kinds.sum(axis=1) * (kinds.sum(axis=1) - 1))
    shares = np.einsum("ki,ki->k", kinds @ (is_alike & same), kinds) / pairs
    varies = (shares.std() / max(shares.mean(), 1e-9)) ** 2
    seen = max(1.0, shares.mean() * sampled * (size - 1) * sampled / num_items / 2)
    return float(np.sqrt(varies / len(kinds) + varies * size / num_items + 1 / seen))


def _cosines(vectors):
    """Of all pairs, about the mean; those of a vector and itself are 1."""
    units = unit(vectors - vectors.mean(axis=0))
    cosines = units @ units.T
    np.fill_diagonal(cosines, 2.0)  # above every bound, whatever the rounding
    return cosines
