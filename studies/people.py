"""Do people agree? Flickr8k's judgments against models of photos.

    python -m studies.people photos_pfe photos_points --data-dir flickr8k --out people.md

Kendall's τ as CLIPScore computes it, whether the first photo fits, and whether a caption's σ, its
entropy and its best score know how many photos fit. Intervals are of a bootstrap over photos: the
captions of a photo are drawn together. Prints tables in Markdown, and writes them.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import kendalltau, spearmanr

from halo_search.errors import InputError
from halo_search.files.atomic import write_text
from studies.judgments import FILE, Grades, Judgments
from zoo import evaluation, metrics
from zoo.cli import OneLineParser, run

KNOWS = ("σ", "entropy", "best score")


class Answers(NamedTuple):
    """What a model says of the judged captions over all photos."""

    scores: np.ndarray  # `(Q, N)`, similarities of captions and photos
    sigma: np.ndarray | None  # `(Q,)`, the captions' uncertainty, or None for points
    recall: float  # R@1 of all captions, text → image, in percent


class Questions(NamedTuple):
    """The judged captions of a split."""

    photos: list  # Q files, the photo of each caption; one caption a photo
    rows: np.ndarray  # `(Q,)`, rows of captions
    images: list  # N files
    fits: np.ndarray  # `(Q, N)`, 1 and 0 as judged, NaN where nobody did

    @classmethod
    def of(cls, records, folder):
        """The captions of a split that people judged."""
        judgments = Judgments.read(folder)
        root = Path(folder).resolve()
        images = [str(Path(path).resolve().relative_to(root)) for path in records.image_paths]
        answers = {
            photo: _plain(text)
            for photo, text in zip(judgments.photo, judgments.captions, strict=True)
        }
        rows = {}
        for row, (text, image) in enumerate(
            zip(records.captions, records.caption_image, strict=True)
        ):
            if answers.get(images[image]) == _plain(text):
                rows.setdefault(images[image], row)
        if not rows:
            raise InputError(f"{folder}: {FILE} judges no caption of this split")
        photos = list(rows)
        return cls(photos, np.array(list(rows.values())), images, judgments.matrix(photos, images))


def main(argv=None):
    parser = OneLineParser(prog="python -m studies.people", description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", help="presets or runs")
    parser.add_argument("--data-dir", type=Path, required=True, help="Flickr8k and judgments.csv")
    parser.add_argument("--draws", type=int, default=100, help="of the bootstrap; 0: no intervals")
    parser.add_argument("--out", type=Path, help="Markdown file to write")
    options = parser.parse_args(argv)
    grades = Grades.read(options.data_dir)
    questions, answers = None, {}
    for name in options.models:
        model, split = evaluation.open_run(name, options.data_dir, "test")
        questions = questions or Questions.of(split.records, options.data_dir)
        answers[f"`{name}`"] = asked(model, split, questions)
    text = tables(answers, questions, grades, options.draws)
    print(text, end="")
    if options.out is not None:
        write_text(options.out, text)


def asked(model, split, questions):
    """A model's `Answers`."""
    encoded = evaluation.encode(model, split.records, split.source)
    scores = np.asarray(model.similarity(encoded.images, encoded.captions)).T
    is_owner = split.records.caption_image[:, None] == np.arange(split.records.num_images)
    sigma = encoded.caption_uncertainty
    return Answers(
        scores[questions.rows],
        None if sigma is None else sigma[questions.rows],
        100 * metrics.recall_at_k(scores, is_owner, 1),
    )


def kendall(scores, questions, grades, variant, with_own):
    """A function of how often each photo was drawn: Kendall's τ × 100, as CLIPScore computes it."""
    row = {name: place for place, name in enumerate(questions.photos)}
    column = {name: place for place, name in enumerate(questions.images)}
    pairs_kept = [
        (row[photo], column[image], value)
        for photo, image, value in zip(*grades, strict=True)
        if photo in row and image in column and (with_own or photo != image)
    ]
    rows, columns, values = (np.array(part) for part in zip(*pairs_kept, strict=True))
    rows = rows.astype(int)
    of_pair = scores[rows, columns.astype(int)]
    return lambda weights: (
        100 * kendalltau(*_drawn(weights[rows], of_pair, values), variant=variant).statistic
    )


def first_fits(scores, fits):
    """`(Q,)` each: whether the first photo is judged to fit, and whether it may."""
    first = fits[np.arange(len(fits)), scores.argmax(axis=1)]
    return first == 1, first != 0


def entropies(scores):
    """`(Q,)`, of the softmax over photos of scores in units of their standard deviation."""
    logits = scores / scores.std()
    logits = logits - logits.max(axis=1, keepdims=True)
    shares = np.exp(logits)
    shares /= shares.sum(axis=1, keepdims=True)
    return -(shares * np.log(np.maximum(shares, 1e-300))).sum(axis=1)


def of_counts(answers, questions):
    """Functions of weights: Spearman of σ, entropy and best score with how many photos fit."""
    counts = np.nansum(questions.fits, axis=1)
    read = answers.sigma, entropies(answers.scores), answers.scores.max(axis=1)
    correlations = (None if values is None else _spearman(values, counts) for values in read)
    return dict(zip(KNOWS, correlations, strict=True))


def _spearman(values, counts):
    return lambda weights: spearmanr(*_drawn(weights, values, counts)).statistic


def _drawn(weights, *columns):
    return [np.repeat(column, weights) for column in columns]


def _plain(text):
    return " ".join(text.split()).strip(" .").lower()


def tables(answers, questions, grades, draws):
    """Two tables in Markdown: of scores, and of what knows how many photos fit."""
    rng = np.random.default_rng(0)
    count = len(questions.photos)
    drawn = [rng.multinomial(count, np.full(count, 1.0 / count)) for _ in range(draws)]
    first = [["τ_c", "τ_c, own pairs too", "τ_b", "τ_b, own pairs too", "R@1", "first photo fits"]]
    second = [list(KNOWS)]
    for name, answers_of_system in answers.items():
        cells = [
            interval(
                kendall(answers_of_system.scores, questions, group, variant, with_own_photo),
                drawn,
                count,
                ".1f",
            )
            for group, variant in zip(grades, "cb", strict=True)
            for with_own_photo in (False, True)
        ]
        lowest, most = (
            np.mean(side) for side in first_fits(answers_of_system.scores, questions.fits)
        )
        first.append(
            [name, *cells, f"{answers_of_system.recall:.1f}", f"{lowest:.2f} to {most:.2f}"]
        )
        knows = of_counts(answers_of_system, questions).values()
        second.append(
            [
                name,
                *(
                    "–" if statistic is None else interval(statistic, drawn, count, "+.2f")
                    for statistic in knows
                ),
            ]
        )
    return f"{_table(first)}\n{_table(second)}"


def interval(function, drawn, count, form):
    """A number, and its 95 % interval over draws of photos."""
    value = _signed(function(np.ones(count, int)), form)
    if not drawn:
        return value
    ends = np.quantile([function(weights) for weights in drawn], (0.025, 0.975))
    return f"{value} [{', '.join(_signed(end, form) for end in ends)}]"


def _signed(value, form):
    return format(value, form).replace("-", "−")


def _table(rows):
    head, *body = rows
    lines = [["", *head], ["---"] * (len(head) + 1), *body]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    run(main)
