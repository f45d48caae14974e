"""How likely results fit, and what can be promised; NumPy and SciPy, no model needed."""

from halo_search.confidence.calibrate import calibrate_on
from halo_search.confidence.confidence import Confidence
from halo_search.confidence.features import feature_names, query_features
from halo_search.confidence.fits import Fits
from halo_search.confidence.known import KnownQueries
from halo_search.confidence.probes import Probes
from halo_search.confidence.quality import smallest_k
from halo_search.confidence.scores import QueryScores, agreement
from halo_search.embeddings.moments import GalleryIdentity, GalleryMoments

__all__ = [
    "Confidence",
    "Fits",
    "GalleryIdentity",
    "GalleryMoments",
    "KnownQueries",
    "Probes",
    "QueryScores",
    "agreement",
    "calibrate_on",
    "feature_names",
    "query_features",
    "smallest_k",
]
