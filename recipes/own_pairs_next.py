"""What a run on your own photos allows to say, in words, and what to do with it."""

from zoo import metrics
from zoo.evaluation.printing import ASKED, verdict

FEW_IMAGES = 50


def lines(results, run):
    """The verdicts, and the next commands, by the results of a run and its folder."""
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
    if "preset_recall@1" in results:
        yield beside_the_preset(own["t2i_recall@1"], results["preset_recall@1"])
    for direction, words in ASKED.items():
        yield f"{words}: {verdict(results['confidence'][direction])}"


def beside_the_preset(own, preset):
    """Which of the trained model and the preset to use, by R@1 on the same test photos."""
    better = "this run" if own > preset else "the preset photos_pfe"
    return (
        f"Text to image, R@1 on the same test photos: this run {own:.1f} %, the preset photos_pfe "
        f"{preset:.1f} %. Use {better}."
    )


def next_commands(run):
    """What to do with the run."""
    yield "Next:"
    yield f"  halo report {run}"
    yield f"  halo search build OTHER_PHOTOS {run}/index --model {run}"
    yield f'  halo search query {run}/index "your text"'
    yield f"  halo export {run} {run}/served"
    yield f"  halo demo {run}"
