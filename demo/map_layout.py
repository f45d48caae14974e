"""The gallery in the plane: principal components of the means, ellipses, elements of sets."""

import functools

import numpy as np

from demo.limits import RefusedError
from halo_search.embeddings.arrays import ellipse_axes, principal_plane

MOST = 5000  # items of a map; of more, evenly chosen ones
HALF = 0.5  # share of a Gaussian inside its ellipse
_DIGITS = 4


class Map:
    """Where the items of a gallery lie in the plane of its two main directions.

    The projection is linear, so the ellipse of a Gaussian has its true size on the map, and a
    question is projected as the items are.

    Args:
        gallery: a `Gallery`.
    """

    def __init__(self, gallery):
        self.gallery = gallery

    @functools.cached_property
    def rows(self):
        """The rows of the gallery that are drawn."""
        count = len(self.gallery.names(self.gallery.main_side))
        if count <= MOST:
            return np.arange(count)
        return np.linspace(0, count - 1, MOST).round().astype(int)

    @functools.cached_property
    def _plane(self):
        gallery = self.gallery
        if "map" in gallery.missing:
            raise RefusedError(gallery.missing["map"])
        if len(gallery.names(gallery.main_side)) < 3:
            raise RefusedError("A map needs at least three items.")
        return principal_plane(_points(gallery.embeddings[gallery.main_side]))

    @functools.cached_property
    def items(self):
        """JSON values: `rows`, `x`, `y` of N items, the `halo` of each, a share of [0, 1] of items
        that are more certain, or None; `ellipses` `(N, 3)`: half axes and angle, of Gaussians; and
        `elements` `(N, K, 2)` of sets."""
        gallery, side, plane = self.gallery, self.gallery.main_side, self._plane
        placed = self._placed(gallery.take(side, self.rows))
        shares = gallery.uncertainty_shares.get(side)
        placed["halo"] = None if shares is None else np.round(shares[self.rows], 3).tolist()
        placed["rows"] = self.rows.tolist()
        placed["names"] = [gallery.names(side)[row] for row in self.rows]
        explained = plane.explained
        placed["explained"] = None if explained is None else float(explained.sum())
        return placed

    def question(self, embedding):
        """Where one question lies: the values of `items` of a single item, and its `halo` among the
        gallery's captions, or its images where it has none."""
        placed = self._placed(embedding)
        values = self.gallery.uncertainty(embedding)
        halo = None if values is None else self._share(float(values[0]))
        return {name: value and value[0] for name, value in placed.items()} | {"halo": halo}

    def _share(self, value):
        """The share of items that are more certain, of the side that has uncertainties."""
        gallery = self.gallery
        for side in ("captions", "images"):
            embedding = gallery.embeddings.get(side)
            values = None if embedding is None else gallery.uncertainty(embedding)
            if values is not None:
                return float(np.mean(np.asarray(values) < value))
        return None

    def _placed(self, embedding):
        plane, found = self._plane, {"ellipses": None, "elements": None}
        if "elements" in embedding:
            elements = (np.asarray(embedding["elements"], float) - plane.origin) @ plane.axes
            points = elements.mean(axis=1)
            found["elements"] = np.round(elements, _DIGITS).tolist()
        elif "log_variance" in embedding:
            points, covariance = plane.project(embedding["mean"], embedding["log_variance"])
            width, height, angle = ellipse_axes(covariance, HALF)
            axes = np.stack([width / 2, height / 2, np.radians(angle)], axis=1)
            found["ellipses"] = np.round(axes, _DIGITS + 1).tolist()
        else:
            points = (np.asarray(embedding["mean"], float) - plane.origin) @ plane.axes
        x, y = np.round(points, _DIGITS).T.tolist()
        return {"x": x, "y": y, **found}


def _points(embedding):
    """The means `(N, dim)`; of sets the elements."""
    if "elements" not in embedding:
        return embedding["mean"]
    return np.asarray(embedding["elements"]).reshape(-1, np.shape(embedding["elements"])[-1])
