"""What a run on your own photos allows to say, in words, and what to do with it."""

from zoo import cli, metrics

import numpy as np

FEW_IMAGES = 50
DIRECTIONS = (("i2t", "Image to text"), ("t2i", "Text to image"))
SAID = {
    "informative": "the confidence is informative ({}): decline by it.",
    "weak": "the confidence is weak ({}, LEAST is wanted): decline by it with care.",
    "not informative": "the confidence is not informative ({}): declining at random is as good.",
    "misleading": "the confidence is misleading ({}): do not decline by it.",
    "undefined": "nothing can be said of the confidence: all answers are right, or all are wrong.",
}


def lines(results, run):
    """The verdicts, and the next commands.

    Args:
        results: of the run, as metrics.json has them.
        run: its folder.
    """
    yield from verdicts(results)
    yield ""
    yield from next_commands(run)


def verdicts(results):
    """What the figures of the test split allow to say, each with its interval of 95 %."""
    own = next(iter(results["retrieval"].values()))
    images = int(own["i2t_queries"])
    if images < FEW_IMAGES:
        hits = round(own["i2t_recall@1"] * images / 100)
        (low,), (high,) = metrics.wilson_interval([hits], [images])
        yield (
            f"Warning: the test has {images} images only. Image to text, R@1 is somewhere from "
            f"{100 * low:.0f} to {100 * high:.0f} %; --held-out-share takes more images."
        )
    ratio = own["rsum"] / results["chance"]["rsum"]
    yield f"RSUM {own['rsum']:.0f}, {ratio:.1f} times chance ({results['chance']['rsum']:.0f})."
    for direction, words in DIRECTIONS:
        yield f"{words}: {_verdict(results['confidence'][direction])}"


def _verdict(found):
    if "why_not" in found:
        return f"no confidence: {found['why_not']}."
    if found["nauc"] is None or np.isnan(found["nauc"]):
        return SAID["undefined"]
    low, high = found["nauc_interval"]
    interval = f"[{low:.2f}, {high:.2f}]".replace("-", "−")
    said = SAID[found["verdict"]].replace("LEAST", str(metrics.INFORMATIVE))
    return said.format(f"nAUC {found['nauc']:.2f} {interval}")


def next_commands(run):
    """What to do with the run."""
    installed = cli.program("")  # as `halo train`, not as a script
    report, search, export, demo = (
        f"halo {name}" if installed else f"python -m {package}{name}"
        for package, name in (("zoo.", "report"), ("zoo.", "search"), ("", "export"), ("", "demo"))
    )
    yield "Next:"
    yield f"  {report} {run}"
    yield f"  {search} build OTHER_PHOTOS {run}/index --model {run}"
    yield f'  {search} query {run}/index "a text of yours"'
    yield f"  {export} {run} {run}/served"
    yield f"  {demo} {run}"
