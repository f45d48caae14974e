"""Search spaces: the coordinates in which a similarity ranks as L2 or inner-product search does."""

import dataclasses
from collections.abc import Callable
from typing import Literal

import numpy as np

from halo_search.embeddings.arrays import element_owners, total_variance, unit


@dataclasses.dataclass(frozen=True)
class SearchSpace:
    """Coordinates of the gallery and of the queries, and how FAISS compares them.

    ```python
    gaussians = {name: np.zeros((4, 8), "float32") for name in ("mean", "log_variance")}
    halo_search.index.SPACES["csd"].gallery(gaussians)  # the vectors that FAISS compares
    ```

    | name | gallery | query | FAISS' value | is |
    |---|---|---|---|---|
    | `"csd"` | [μ, √Σσ²] | [μ, 0] | squared L2 | CSD − Σσ² of the query |
    | `"wasserstein_2"` | [μ, σ] | [μ, σ] | squared L2 | W2² |
    | `"euclidean"` | μ | μ | squared L2 | ‖μ − μ'‖² |
    | `"cosine"` | μ / ‖μ‖ | μ / ‖μ‖ | inner product | cosine |
    | `"elements"` | x / ‖x‖ of every element | likewise | inner product | cosine of two elements |

    Proof for CSD: ‖[μ_g, √Σσ_g²] − [μ_q, 0]‖² = ‖μ_g − μ_q‖² + Σσ_g², which is CSD less Σσ_q², and
    that is one number for all the gallery of a query. So the nearest neighbours are the same, ties
    included, and adding Σσ_q² gives CSD itself. For W2 the definition is already a squared L2
    distance of [μ, σ]. Both are exact, so nothing has to be ranked again.

    Attributes:
        name: as above.
        metric: `"l2"`, of squared distances, or `"inner_product"`.
        gallery, queries: from an embedding (dict of arrays) to float32 `(rows, dim')`.
        offset: from the queries to `(queries,)`, to add to FAISS' value, or None.
    Reference: CSD is equation 1 of Chun, ICLR 2024. The coordinate is kin to the reduction of
        inner-product search to L2 search by Bachrach et al., "Speeding Up the Xbox Recommender
        System", RecSys 2014.
    """

    name: str
    metric: Literal["l2", "inner_product"]
    gallery: Callable
    queries: Callable
    offset: Callable | None = None

    def item_vectors(self, gallery):
        """One vector an item, `(items, dim')`: of sets the mean of their elements' vectors."""
        rows = self.gallery(gallery)
        if "elements" not in gallery:
            return rows
        owners = element_owners(gallery)
        sums = np.zeros((len(gallery["elements"]), rows.shape[1]), np.float32)
        np.add.at(sums, owners, rows)
        return sums / np.bincount(owners, minlength=len(sums))[:, None]

    def scores(self, values, queries, score):
        """A similarity's scores, by its `scorer`, from an engine's squared distances or products
        `(queries, k)` in this space."""
        if self.offset is not None:
            # In the engine's precision: a search gives float32, whatever the offset is.
            values = (values + self.offset(queries)[:, None]).astype(values.dtype, copy=False)
        return score(values)


def straight_line(score):
    """`(slope, shift)` of a function of FAISS' value that is a straight line, else None."""
    at_0, at_1, at_4 = (float(score(np.array([x], np.float64))[0]) for x in (0.0, 1.0, 4.0))
    slope = at_1 - at_0
    return (slope, at_0) if np.isclose(at_4, at_0 + 4 * slope, rtol=1e-5) else None


def _with_coordinate(mean, coordinate):
    vectors = np.empty((mean.shape[0], mean.shape[1] + 1), np.float32)
    vectors[:, :-1] = mean
    vectors[:, -1] = coordinate
    return vectors


def _mean_and_spread(arrays):
    return _with_coordinate(arrays["mean"], np.sqrt(total_variance(arrays)))


def _mean_and_zero(arrays):
    return _with_coordinate(arrays["mean"], 0.0)


def _mean_and_deviation(arrays):
    return np.concatenate([arrays["mean"], np.exp(0.5 * arrays["log_variance"])], axis=1)


def _mean(arrays):
    return np.ascontiguousarray(arrays["mean"])


def _direction(arrays):
    return unit(arrays["mean"])


def _elements(arrays):
    rows = unit(arrays["elements"]).reshape(-1, arrays["elements"].shape[-1])
    return rows if "mask" not in arrays else rows[arrays["mask"].reshape(-1)]


SPACES = {
    space.name: space
    for space in (
        SearchSpace("csd", "l2", _mean_and_spread, _mean_and_zero, total_variance),
        SearchSpace("wasserstein_2", "l2", _mean_and_deviation, _mean_and_deviation),
        SearchSpace("euclidean", "l2", _mean, _mean),
        SearchSpace("cosine", "inner_product", _direction, _direction),
        SearchSpace("elements", "inner_product", _elements, _elements),
    )
}
