"""How likely answers are right: `halo_search.confidence`, and the metrics of a confidence."""

from halo_search.confidence import (
    Confidence,
    Fits,
    GalleryIdentity,
    GalleryMoments,
    KnownQueries,
    Probes,
    QueryScores,
    agreement,
    calibrate_on,
    feature_names,
    query_features,
    smallest_k,
)
from zoo.metrics.confidence import (
    abstention_auc,
    confidence_quality,
    expected_calibration_error,
    reliability,
)

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
