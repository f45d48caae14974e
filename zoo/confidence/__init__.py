"""How likely results fit, and what can be promised; NumPy and SciPy, no model needed."""

from zoo.confidence.calibrate import calibrate_on
from zoo.confidence.confidence import Confidence
from zoo.confidence.features import feature_names, query_features
from zoo.confidence.fits import Fits
from zoo.confidence.guarantees import smallest_k
from zoo.confidence.known import KnownQueries
from zoo.confidence.moments import GalleryIdentity, GalleryMoments
from zoo.confidence.probes import Probes
from zoo.confidence.quality import (
    abstention_auc,
    confidence_quality,
    expected_calibration_error,
    reliability,
)
from zoo.confidence.scores import QueryScores, agreement
from zoo.former import lookup

__all__ = [
    "Confidence",
    "Fits",
    "GalleryIdentity",
    "GalleryMoments",
    "KnownQueries",
    "Probes",
    "QueryScores",
    "abstention_auc",
    "agreement",
    "calibrate_on",
    "confidence_quality",
    "expected_calibration_error",
    "feature_names",
    "query_features",
    "reliability",
    "smallest_k",
]

__getattr__ = lookup(__name__)  # names of earlier versions
