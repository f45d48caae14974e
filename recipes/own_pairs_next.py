"""The verdicts on a run on your photos, in words, and the commands to use it."""

from zoo import metrics
from zoo.evaluation.printing import ASKED, verdict

FEW_IMAGES = 50


def lines(results, run):
    """The verdicts, and the next commands, by the results of a run and its folder."""
    yield from verdicts(results)
    yield ""
    yield from next_commands(run)


def verdicts(results):
    """What the results on the test split allow to say, a sentence each."""
    retrieval = next(iter(results["retrieval"].values()))
    images = int(retrieval["i2t_queries"])
    if images < FEW_IMAGES:
        hits = round(retrieval["i2t_recall@1"] * images / 100)
        (low,), (high,) = metrics.wilson_interval([hits], [images])
        yield (
            f"Warning: the test has {images} images only. Image to text, R@1 is somewhere from "
            f"{100 * low:.0f} to {100 * high:.0f} %; --held-out-share takes more images."
        )
    ratio = retrieval["rsum"] / results["chance"]["rsum"]
    yield (
        f"RSUM {retrieval['rsum']:.0f}, {ratio:.1f} times chance ({results['chance']['rsum']:.0f})."
    )
    if "preset_recall@1" in results:
        yield beside_the_preset(retrieval["t2i_recall@1"], results["preset_recall@1"])
    for direction, words in ASKED.items():
        yield f"{words}: {verdict(results['confidence'][direction])}"


def beside_the_preset(trained, preset):
    """Which of the trained model and the preset to use, by R@1 on the same test photos."""
    better = "this run" if trained > preset else "the preset photos_pfe"
    return (
        f"Text to image, R@1 on the same test photos: this run {trained:.1f} %, the preset "
        f"photos_pfe {preset:.1f} %. Use {better}."
    )


def next_commands(run):
    """The commands that use the run."""
    yield "Next:"
    yield f"  halo report {run}"
    yield f"  halo search build OTHER_PHOTOS {run}/index --model {run}"
    yield f'  halo search query {run}/index "your text"'
    yield f"  halo export {run} {run}/served"
    yield f"  halo demo {run}"
