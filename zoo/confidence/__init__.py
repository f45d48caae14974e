"""How likely results fit, and what can be promised; NumPy and SciPy, no model needed."""

from zoo.confidence.calibrate import calibrate_on
from zoo.confidence.confidence import Confidence
from zoo.confidence.features import feature_names, query_features
from zoo.confidence.fits import Fits
from zoo.confidence.guarantees import (
    Certificate,
    absence_p_values,
    candidate_thresholds,
    certified_threshold,
    missed_matches_threshold,
    score_threshold,
    smallest_k,
)
from zoo.confidence.known import KnownQueries
from zoo.confidence.moments import GalleryIdentity, GalleryMoments
from zoo.confidence.monitor import Alarm, Verdict, monitored
from zoo.confidence.probes import Probes
from zoo.confidence.quality import (
    abstention_auc,
    confidence_quality,
    expected_calibration_error,
    reliability,
)
from zoo.confidence.scores import QueryScores, agreement, without_matches

__all__ = [
    "Alarm",
    "Certificate",
    "Confidence",
    "Fits",
    "GalleryIdentity",
    "GalleryMoments",
    "KnownQueries",
    "Probes",
    "QueryScores",
    "Verdict",
    "absence_p_values",
    "abstention_auc",
    "agreement",
    "calibrate_on",
    "candidate_thresholds",
    "certified_threshold",
    "confidence_quality",
    "expected_calibration_error",
    "feature_names",
    "missed_matches_threshold",
    "monitored",
    "query_features",
    "reliability",
    "score_threshold",
    "smallest_k",
    "without_matches",
]
