"""How sure the answers of a run are, in a sentence: for the terminal and for the report."""

import numpy as np

from zoo import metrics
from zoo.evaluation.calibration import RISK

ASKED = {"i2t": "Image to text", "t2i": "Text to image"}
SAID = {
    "informative": "the confidence is informative ({}): decline by it.",
    "weak": "the confidence is weak ({}, LEAST is wanted): decline by it with care.",
    "not informative": "the confidence is not informative ({}): declining at random is as good.",
    "misleading": "the confidence is misleading ({}): do not decline by it.",
    "undefined": "nothing can be said of the confidence: all answers are right, or all are wrong.",
}


def verdict(found):
    """Whether one may decline by the confidence of one direction.

    Args:
        found: as of `sentence`.

    Returns:
        A sentence, to stand behind the name of the direction and a colon.
    """
    if "why_not" in found:
        return f"no confidence: {found['why_not']}."
    if found["nauc"] is None or np.isnan(found["nauc"]):
        return SAID["undefined"]
    low, high = found["nauc_interval"]
    said = SAID[found["verdict"]].replace("LEAST", str(metrics.INFORMATIVE))
    return said.format(with_minus(f"nAUC {found['nauc']:.2f} [{low:.2f}, {high:.2f}]"))


def sentence(direction, found):
    """One line about the confidence of one direction.

    Args:
        direction: `"i2t"` or `"t2i"`.
        found: its part of the results of `zoo.evaluation.calibrate_run`, as metrics.json has them.
    """
    text = f"{direction}: confidence {_quality(found)}"
    half = found["half_of_test"]
    if "why_not" in half:
        return text
    both = f"nAUC {_nauc(half['nauc'])}, calibration error {_percent(half['calibration_error'])} %"
    return f"{text}; calibrated on half of the test queries: {both}"


def _quality(found):
    if "why_not" in found:
        return f"was not calibrated: {found['why_not']}"
    names = {"uncertainty": "uncertainty", "best_score": "best score"}
    names["best_minus_mean"] = "best score − mean"
    alone = ", ".join(
        f"{names[name]} alone {_nauc(value)}" for name, value in found["nauc_of"].items()
    )
    text = (
        f"nAUC {_nauc(found['nauc'])} ({alone}), "
        f"calibration error {_percent(found['calibration_error'])} %"
    )
    certified = found["certified_threshold"]
    if certified is None:
        return f"{text}; at most {100 * RISK:.0f} % wrong cannot be promised"
    return (
        f"{text}; calibrated for at most {100 * certified['promised_risk']:.0f} % wrong: answers "
        f"{_percent(certified['answered'])} %, of these {_percent(certified['risk'])} % wrong"
    )


def _nauc(value):
    """A normalised area, 0 at random and 1 of an oracle, as the pages have it."""
    return "undefined" if value is None or np.isnan(value) else with_minus(f"{value:.2f}")


def _percent(share):
    """A share in percent, which is undefined of no query, or where all are right or wrong."""
    return "undefined" if share is None or np.isnan(share) else f"{100 * share:.1f}"


def with_minus(number):
    """A formatted number with a true minus sign, as on the axes."""
    return number.replace("-", "−")
