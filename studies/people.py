"""Do people agree? Flickr8k's judgments against every system of the Flickr8k table.

    python -m studies.flickr8k_table --data-dir flickr8k …      # the runs, first
    python -m studies.people --data-dir flickr8k --runs runs/flickr8k_table --out people.md
    python -m studies.people --data-dir flickr8k --presets photos_pfe photos_points

Kendall's τ as CLIPScore computes it, whether the first photo fits, and whether a caption's σ, its
entropy and its best score know how many photos fit. Intervals are of a bootstrap over photos: the
captions of a photo are drawn together. Prints tables in Markdown, and writes them.
"""

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import kendalltau, spearmanr

import zoo
from studies import flickr8k_run, flickr8k_table, seed_table
from studies.judgments import FILE, Grades, Judgments
from zoo import cli, data, evaluation, metrics
from zoo.cli import setting
from zoo.errors import InputError
from zoo.files import RunFolder
from zoo.files.atomic import write_text

KNOWS = ("σ", "entropy", "best score")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Which runs, and where people's judgments are."""

    data_dir: Path | None = setting(None, "Required. Flickr8k: pairs.csv, judgments.csv, photos")
    runs: Path = setting(Path("runs/flickr8k_table"), "folder of the runs of flickr8k_table")
    text_weights: str | None = setting(None, "of MiniLM, where it has moved")
    rows: tuple[str, ...] = setting(
        tuple(flickr8k_table.SYSTEMS), "rows of the table to run, by name"
    )
    presets: tuple[str, ...] = setting((), "presets to ask too")
    seeds: tuple[int, ...] = setting((0, 1, 2), "seeds of the runs")
    draws: int = setting(100, "of the bootstrap over photos; 0: no intervals")
    out: Path | None = setting(None, "Markdown file to write; default: print")

    def __post_init__(self):
        if self.data_dir is None:
            raise ValueError("--data-dir must be given; received nothing")
        if self.draws < 0:
            raise ValueError(f"--draws must be at least 0; received {self.draws}")


class Answers(NamedTuple):
    """What a model says of the judged captions over all photos.

    Attributes:
        scores: `(Q, N)`, similarities of captions and photos.
        sigma: `(Q,)`, the captions' uncertainty, or None for points.
        recall: R@1 of all captions, text → image, in percent.
    """

    scores: np.ndarray
    sigma: np.ndarray | None
    recall: float


class Questions(NamedTuple):
    """The judged captions of a split.

    Attributes:
        own: Q files, the photo of each caption; one caption a photo.
        rows: `(Q,)`, rows of captions.
        images: N files.
        fits: `(Q, N)`, 1 and 0 as judged, NaN where nobody did.
    """

    own: list
    rows: np.ndarray
    images: list
    fits: np.ndarray

    @classmethod
    def of(cls, records, folder):
        """The captions of a split that people judged."""
        judgments = Judgments.read(folder)
        root = Path(folder).resolve()
        images = [str(Path(path).resolve().relative_to(root)) for path in records.image_paths]
        said = {
            own: _plain(text) for own, text in zip(judgments.own, judgments.captions, strict=True)
        }
        rows = {}
        for row, (text, image) in enumerate(
            zip(records.captions, records.caption_image, strict=True)
        ):
            if said.get(images[image]) == _plain(text):
                rows.setdefault(images[image], row)
        if not rows:
            raise InputError(f"{folder}: {FILE} judges no caption of this split")
        own = list(rows)
        return cls(own, np.array(list(rows.values())), images, judgments.matrix(own, images))


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    grades = Grades.read(settings.data_dir)
    questions, answers = None, {}
    for row in settings.rows:
        runs = [RunFolder(seed_table.folder(settings.runs, row, seed)) for seed in settings.seeds]
        found = []
        for run in (run for run in runs if run.finished):
            split, model = opened(run, settings), zoo.from_preset(run.path)
            questions = questions or Questions.of(split.records, settings.data_dir)
            found.append(asked(model, split, questions))
        if found:
            answers[row] = found
    for name in settings.presets:
        model, split = evaluation.open_run(name, settings.data_dir, "test")
        questions = questions or Questions.of(split.records, settings.data_dir)
        answers[f"`{name}`"] = [asked(model, split, questions)]
    if not answers:
        raise InputError(f"{settings.runs}: expected finished runs of {', '.join(settings.rows)}")
    text = tables(answers, questions, grades, settings.draws)
    print(text, end="")
    if settings.out is not None:
        write_text(settings.out, text)
    return answers


def opened(run, settings):
    """The test split of a run as stored features; runs that read the same share it."""
    said = run.settings
    names = ("image_size", "image_weights", "text_weights", "max_words")
    own = {name: said[name] for name in names}
    if settings.text_weights is not None:
        own["text_weights"] = settings.text_weights
    return _split(json.dumps({**run.data, "root": str(settings.data_dir)}), tuple(own.items()))


@functools.cache
def _split(described, read):
    frozen = flickr8k_run.networks(flickr8k_run.Settings(**dict(read)))
    return flickr8k_run.stored(data.open(json.loads(described), "test"), *frozen)


def asked(model, split, questions):
    """A model's `Answers`."""
    encoded = evaluation.encode(model, split.records, split.source)
    scores = np.asarray(model.similarity(encoded.images, encoded.captions)).T
    own = split.records.caption_image[:, None] == np.arange(split.records.num_images)
    sigma = encoded.caption_uncertainty
    return Answers(
        scores[questions.rows],
        None if sigma is None else sigma[questions.rows],
        100 * metrics.recall_at_k(scores, own, 1),
    )


def kendall(scores, questions, grades, variant, with_own):
    """A function of how often each photo was drawn: Kendall's τ × 100, as CLIPScore computes it.

    Args:
        scores: `(Q, N)`.
        questions, grades: `Questions`, `Grades`.
        variant: `"c"` for the experts, `"b"` for the crowd.
        with_own: whether a caption's own photo counts.
    """
    row = {name: place for place, name in enumerate(questions.own)}
    column = {name: place for place, name in enumerate(questions.images)}
    kept = [
        (row[own], column[image], value)
        for own, image, value in zip(*grades, strict=True)
        if own in row and image in column and (with_own or own != image)
    ]
    rows, columns, values = (np.array(part) for part in zip(*kept, strict=True))
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
    read = dict(
        zip(
            KNOWS,
            (answers.sigma, entropies(answers.scores), answers.scores.max(axis=1)),
            strict=True,
        )
    )
    return {
        name: None if values is None else _spearman(values, counts) for name, values in read.items()
    }


def _spearman(values, counts):
    return lambda weights: spearmanr(*_drawn(weights, values, counts)).statistic


def _drawn(weights, *columns):
    return [np.repeat(column, weights) for column in columns]


def _plain(text):
    return " ".join(text.split()).strip(" .").lower()


def tables(answers, questions, grades, draws):
    """Two tables in Markdown: of scores, and of what knows how many photos fit."""
    rng = np.random.default_rng(0)
    count = len(questions.own)
    even = np.full(count, 1.0 / count)
    drawn = [rng.multinomial(count, even) for _ in range(draws)]
    first = [["τ_c", "τ_c, own pairs too", "τ_b", "τ_b, own pairs too", "R@1", "first photo fits"]]
    second = [list(KNOWS)]
    for row, of_seeds in answers.items():
        cells = []
        for group, variant in zip(grades, "cb", strict=True):
            for with_own in (False, True):
                found = [
                    kendall(one.scores, questions, group, variant, with_own) for one in of_seeds
                ]
                cells.append(interval(found, drawn, count, ".1f"))
        cells.append(f"{np.mean([one.recall for one in of_seeds]):.1f}")
        bounds = [first_fits(one.scores, questions.fits) for one in of_seeds]
        lowest, most = (np.mean([bound[side] for bound in bounds]) for side in (0, 1))
        cells.append(f"{lowest:.2f} to {most:.2f}")
        first.append([row, *cells])
        knows = [of_counts(one, questions) for one in of_seeds]
        second.append(
            [
                row,
                *(
                    "–"
                    if knows[0][name] is None
                    else interval([one[name] for one in knows], drawn, count, "+.2f")
                    for name in KNOWS
                ),
            ]
        )
    return f"{_table(first)}\n{_table(second)}"


def interval(functions, drawn, count, form):
    """A mean over seeds, and the 95 % interval of it over draws of photos."""

    def mean(weights):
        return np.mean([function(weights) for function in functions])

    said = _signed(mean(np.ones(count, int)), form)
    if not drawn:
        return said
    ends = np.quantile([mean(weights) for weights in drawn], (0.025, 0.975))
    return f"{said} [{', '.join(_signed(end, form) for end in ends)}]"


def _signed(value, form):
    return format(value, form).replace("-", "−")


def _table(rows):
    head, *body = rows
    lines = [["", *head], ["---"] * (len(head) + 1), *body]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    cli.run(main)
