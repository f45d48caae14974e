"""The README's picture: the packaged photos asked, answered and declined, and what declining gains.

    python -m tools.first_screen                        # docs/images/first_screen*.png

The curve is of the model's probes, held-out pairs of a photo and a caption, each asked over the
packaged photos with its own photo put there. One half calibrates the other.
"""

import textwrap
from pathlib import Path

import matplotlib
import matplotlib.style
import numpy as np
from PIL import Image

import zoo
from halo_search.confidence.judge import LIKELY, UNSURE
from zoo.cli import OneLineParser
from zoo.data import packaged_photos
from zoo.metrics import risk_coverage
from zoo.plots import style
from zoo.plots.style import GREY, RIGHT, WRONG

TOP, SIDE = 4, 320
FAINT = 0.45  # of a picture that is not meant as an answer
QUESTIONS = ("two people riding horses on the beach", "a penguin")
MODEL = "photos_pfe"
# Of what is right and wrong, and of the curve; on a dark ground 8:1, and 4.8:1.
LIGHT, DARK = (RIGHT, WRONG, style.PALETTE[0]), ("#35c79a", "#ff9d5c", "#2e94d6")
ON_DARK = {**matplotlib.style.library["dark_background"], "grid.color": "#3a3e49"}
ON_DARK |= dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "#1e2129")


def main(argv=None):
    parser = OneLineParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/images/first_screen.png"))
    options, photos = parser.parse_args(argv), packaged_photos()
    retriever = zoo.Retriever.build(MODEL, photos)
    rows = [
        (answer, [square(photos[i], place < shown(answer)) for place, i in enumerate(answer.ids)])
        for answer in retriever.ask(QUESTIONS, k=TOP)
    ]
    probability, right = cross_fitted(retriever, seed=0)
    surest = np.argsort(-probability, kind="stable")[: len(right) // 2]
    print(
        f"of {len(right):,} held-out captions {1 - right.mean():.0%} find a wrong photo first, of "
        f"the surest half {1 - right[surest].mean():.0%}"
    )
    dark = options.out.with_stem(f"{options.out.stem}_dark")
    for path, colours, look in ((options.out, LIGHT, {}), (dark, DARK, ON_DARK)):
        with matplotlib.rc_context({**style.STYLE, **look}):
            draw(rows, probability, right, *colours).savefig(path, dpi=130)
        _fewer_colours(path)


def cross_fitted(retriever, seed):
    """`(probability, right)` of the probes' captions, each half calibrated by the other."""
    probes, index = retriever.probes, retriever.index
    order = np.random.default_rng(seed).permutation(len(probes.image_labels))
    halves = []
    for images in np.array_split(order, 2):
        images = np.sort(images)
        captions = np.flatnonzero(np.isin(probes.caption_images, images))
        halves.append(probes.take(images, captions))
    probabilities = []
    for learnt, asked in (halves, halves[::-1]):
        confidence = learnt.calibrate(index)
        pairs = asked.pairs("t2i")
        own_item = pairs["matches"].argmax(axis=1)[:, None]
        probed = index.probe(pairs["queries"], pairs["own"], own_item, confidence.copies, seed)
        probabilities.append((confidence.probability(probed.scores), probed.correct))
    return [np.concatenate(parts) for parts in zip(*probabilities, strict=True)]


def shown(answer):
    """How many of the first results fit; of a refused question none."""
    return answer.fitting if answer.verdict in (LIKELY, UNSURE) and answer.fitting else 0


def square(path, answered):
    """The middle of a photo as pixels, pale and grey where it is not meant as an answer."""
    with Image.open(path) as opened:
        side = min(opened.size)
        left, top = ((length - side) // 2 for length in opened.size)
        cropped = opened.convert("RGB").crop((left, top, left + side, top + side))
    pixels = np.asarray(cropped.resize((SIDE, SIDE), Image.Resampling.LANCZOS), float)
    if answered:
        return pixels
    grey = pixels.mean(axis=2, keepdims=True).repeat(3, axis=2)
    return FAINT * grey + (1 - FAINT) * 128


def draw(rows, probability, right, likely, unlikely, surest):
    """The figure."""
    figure = style.new_figure(11.0, 4.3)
    left, side = figure.subfigures(1, 2, width_ratios=(2.3, 1.0))
    grid = left.add_gridspec(len(rows), TOP + 1, width_ratios=[1.25] + [1.0] * TOP)
    for row, (answer, pictures) in enumerate(rows):
        axis = left.add_subplot(grid[row, 0])
        axis.axis("off")
        color = likely if answer.verdict == "likely" else unlikely
        stated = f"{answer.verdict[0].upper()}{answer.verdict[1:]}"
        quoted = textwrap.fill(f"“{answer.question}”", 20)
        axis.text(0, 0.94, quoted, fontsize=11, va="top")
        below = 0.94 - 0.16 * (quoted.count("\n") + 1) - 0.06
        axis.text(0, below, stated, color=color, fontsize=12, weight="bold", va="top")
        for place, pixels in enumerate(pictures, start=1):
            axis = left.add_subplot(grid[row, place])
            style.show_image(axis, pixels)
            if answer.verdict in (LIKELY, UNSURE):
                axis.set_xlabel(f"fits {100 * answer.fits[place - 1]:.0f} %", fontsize=9)
    axis = side.subplots()
    curve = risk_coverage(-probability, ~right)
    random = 100 * curve["random_aurc"]
    x, y = 100 * curve["coverage"], 100 * curve["risk"]
    few = len(x) // 50  # of fewer answers a share of wrong ones is noise
    axis.plot(x[few:], y[few:], color=surest, label="the surest first")
    axis.axhline(random, color=GREY, linestyle=":", label="at random")
    axis.set(xlabel="answered, in %", ylabel="of these wrong, in %", xlim=(0, 100))
    axis.set_ylim(0, 1.15 * max(random, y[few:].max()))
    axis.set_title("What declining gains")
    axis.legend(loc="lower right")
    return figure


def _fewer_colours(path):
    """A PNG of 256 colours, which keeps it small."""
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(256, dither=Image.Dither.FLOYDSTEINBERG)
    small.save(path, optimize=True)


if __name__ == "__main__":
    main()
