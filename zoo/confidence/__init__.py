"""How likely results fit, and what can be promised; NumPy and SciPy, no model needed."""

from zoo.confidence.calibrate import calibrate_on
from zoo.confidence.confidence import Confidence
from zoo.confidence.features import feature_names as feature_names
from zoo.confidence.features import query_features as query_features
from zoo.confidence.fits import Fits
from zoo.confidence.known import KnownQueries as KnownQueries
from zoo.confidence.probes import Probes
from zoo.confidence.quality import smallest_k
from zoo.confidence.scores import QueryScores as QueryScores
from zoo.confidence.scores import agreement as agreement
from zoo.embeddings.moments import GalleryIdentity as GalleryIdentity
from zoo.embeddings.moments import GalleryMoments as GalleryMoments
from zoo.errors import lookup

__all__ = [
    "Confidence",
    "Fits",
    "Probes",
    "abstention_auc",
    "calibrate_on",
    "confidence_quality",
    "expected_calibration_error",
    "reliability",
    "smallest_k",
]

# Metrics need Keras, which a question does without.
_METRICS = "abstention_auc", "confidence_quality", "expected_calibration_error", "reliability"
__getattr__ = lookup(__name__, dict.fromkeys(_METRICS, "zoo.metrics.confidence"))
