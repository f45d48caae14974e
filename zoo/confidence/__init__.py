"""How likely an answer is right, and what can be promised; NumPy and SciPy, no model needed."""

from zoo.confidence.absence import absence_p_values, benjamini_hochberg
from zoo.confidence.answer_agreement import agreement
from zoo.confidence.calibrate import calibrate_on
from zoo.confidence.certificate import Certificate
from zoo.confidence.confidence import Confidence
from zoo.confidence.features import JUDGED, PORTABLE, feature_names, query_features
from zoo.confidence.gallery import GalleryIdentity
from zoo.confidence.guarantees import (
    candidate_thresholds,
    certified_threshold,
    missed_matches_threshold,
    score_threshold,
    smallest_k,
)
from zoo.confidence.moments import GalleryMoments
from zoo.confidence.probes import Probes
from zoo.confidence.quality import (
    abstention_auc,
    confidence_quality,
    expected_calibration_error,
    reliability,
)
from zoo.confidence.scores import QueryScores, without_matches
from zoo.confidence.shift import Verdict
from zoo.confidence.unknown import KnownQueries

__all__ = [
    "JUDGED",
    "PORTABLE",
    "Certificate",
    "Confidence",
    "GalleryIdentity",
    "GalleryMoments",
    "KnownQueries",
    "Probes",
    "QueryScores",
    "Verdict",
    "absence_p_values",
    "abstention_auc",
    "agreement",
    "benjamini_hochberg",
    "calibrate_on",
    "candidate_thresholds",
    "certified_threshold",
    "confidence_quality",
    "expected_calibration_error",
    "feature_names",
    "missed_matches_threshold",
    "query_features",
    "reliability",
    "score_threshold",
    "smallest_k",
    "without_matches",
]
