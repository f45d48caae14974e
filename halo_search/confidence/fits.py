"""Whether a result fits the question, as people judge it: not the wanted item alone does."""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from halo_search.confidence import quality
from halo_search.confidence.bank import COLUMNS
from halo_search.confidence.features import ODDS, Logistic
from halo_search.confidence.sigmoid import expit, logit
from halo_search.confidence.students_t import students_quantile
from halo_search.confidence.words import is_short
from halo_search.embeddings import checks

# Share of the questions that have an answer: of all who ask, so that no answer depends on what else
# is asked beside it.
ANSWERABLE = 0.9
# What the second opinion is learnt of: the first result of a sentence, its later ones, and results
# of a short question, by labels or by captions' words alone. Each reads what an ablation left of
# `opinion_features`.
# Of a short question nothing is read that depends on the other items of a gallery, so that a part
# of a gallery is told what the gallery is told: such columns gained nothing over the eye labels,
# and these four are as good as twelve. With those, photos fit "white dog" better than "dog".
FIRST, LATER, SHORT, WORDS = "first", "later", "short", "words"
SMALL = 20  # items of a gallery, below which scores have too little to be compared with
READS = {
    FIRST: (
        *("odds", "score", "z_score", "gap_5", "gap_20"),
        *("told", "told_rank", "words", "words_z", "general"),
    ),
    LATER: ("odds", "z_score", "size", "rank", "told", "words"),
    SHORT: ("score", "told", "share", "captions"),
    WORDS: ("score", "z_score", "prior", "told", "words", "share", "captions"),
}
PENALTIES = {FIRST: 0.03, LATER: 0.01, SHORT: 0.003, WORDS: 0.003}
ALBUM = 0.4  # share of the probes' items that these are worth, below which a gallery is of one kind
LEAST_ANSWERED = 0.05  # share of a trial's questions from which a cut-off is tested
# Of each test of a cut-off, that it passes unjustly: a tenth of what is promised of a gallery. Its
# questions share its items, so that they tell less than as many independent ones; at 0.05 a promise
# of 40 % unfit was broken in 5 of 20 galleries of `studies.fits`, at 0.02 one of 30 % in 10 of 99.
TEST_LEVEL = 0.01
NEAR_SIZE = 2.0  # a certificate is of a captioned gallery at most this much smaller or larger


@dataclasses.dataclass(frozen=True, eq=False)
class Trial:
    """Questions whose fitting items are known, asked over a captioned gallery."""

    size: int  # number of items
    probability: np.ndarray  # (Q, R), that each of the best R results fits
    fit: np.ndarray  # (Q, R), whether it does: 0 or 1, or by an oracle a probability
    asked: int  # questions per gallery, on average


@dataclasses.dataclass(frozen=True, eq=False)
class Strangers:
    """The best items of captioned photos' questions, their own left out."""

    score: np.ndarray  # (n,)
    item: np.ndarray  # (n,), the row among the model's probes
    fit: np.ndarray  # (n,), how likely it fits
    items: int  # of the probes


class Cut(NamedTuple):
    """A certified cut-off: results with a probability of at least `threshold` are shown."""

    unfit: float  # the promised share of shown results that do not fit
    threshold: float
    answered: float  # share of the questions that are shown a result at all
    size: int  # of the captioned gallery that certified it


@dataclasses.dataclass(frozen=True, eq=False)
class Fits:
    """How likely results fit, for one model and one direction.

    Another item than the wanted one fits with ρ = σ(a s + b), where s is its score, so that a
    result fits with P = p + (1 − p) ρ, where p is the probability that it is the wanted item. A
    second opinion then reads P, scores and what captioned photos show, see `opinion_features`.
    `zoo.evaluation.fits.learn_fits` learns it from captioned photos at the end of training.

    ```python
    fits = halo_search.confidence.Fits(np.array([5.9, 10.4]))
    fits.others(np.array([[-1.2, -1.5, -2.0]]))  # ρ of the best three results, (1, 3)
    ```

    Attributes:
        sentence: `(2,)`, a and b.
        second: by a key of `READS`, the `Logistic` of the second opinion; `"short"` are questions
            of up to three content words. Empty: P is said as it is.
        below: of `"first"`, the probability of the first result, and of `"short"`, that of the
            likeliest, below which nothing matches: 95 % of answerable questions and 98.5 % of
            common words exceed it.
        trials: `Trial`s over captioned galleries of several sizes.
        source: what it was learnt from, in words.
        most: what no probability exceeds; None: what `trials` have shown.
        strangers: `Strangers`, by which `near` learns for a gallery of one kind; or None.

    Reference: docs/results/confidence.md for the formulas' measurements on people's judgments.
    """

    sentence: np.ndarray
    second: dict[str, Logistic] = dataclasses.field(default_factory=dict)
    below: dict[str, float] = dataclasses.field(default_factory=dict)
    trials: tuple[Trial, ...] = ()
    source: str = ""
    most: float | None = None
    strangers: Strangers | None = None

    @functools.cached_property
    def ceiling(self):
        """What no probability exceeds: `most`, else a bound of the share that fits among the
        trials' most likely results."""
        if self.most is not None or not self.trials:
            return 1.0 if self.most is None else self.most
        probability, fit = (
            np.concatenate([np.ravel(getattr(trial, name)) for trial in self.trials])
            for name in ("probability", "fit")
        )
        return quality.ceiling(probability.astype(np.float64), fit)

    def near(self, likeness):
        """These for a gallery to whose items those of the probes are alike, `(items,)` weights of
        `InGallery.likeness`: how often photos fit at one score differs by what they show."""
        known = self.strangers
        if known is None or likeness is None or len(likeness) != known.items:
            return self
        slope, bias = self.sentence
        line = Logistic(np.zeros(1), np.ones(1), np.array([slope]), bias)
        shift = line.missing_bias(known.score[:, None], known.fit, likeness[known.item])
        local = dataclasses.replace(self, sentence=np.array([slope, bias + shift]))
        worth = likeness.sum() ** 2 / np.square(likeness).sum()
        if worth >= ALBUM * known.items:
            return local
        # What the second opinion of sentences has learnt, and certificates, are of mixed galleries.
        second, below = (
            {kind: value for kind, value in learned.items() if kind in (SHORT, WORDS)}
            for learned in (self.second, self.below)
        )
        return dataclasses.replace(local, second=second, below=below, trials=(), most=self.ceiling)

    def others(self, scores):
        """ρ, how likely items fit that are not the wanted one, shaped as `scores`; at most
        `ceiling`."""
        slope, bias = self.sentence
        return np.minimum(expit(slope * np.asarray(scores, np.float64) + bias), self.ceiling)

    def number(self, scores):
        """Σ ρ over a whole gallery, `(Q,)`, of `QueryScores`."""
        return scores.total(self.others)

    def opinion(self, plain, scores, shown, asked, short):
        """P of results `(Q, k)` by the second opinion on `plain`, P by the scores alone; `plain`
        itself for kinds of questions of which there is none. Arguments as of `Judge`."""
        found = np.minimum(plain, self.ceiling)
        table = opinion_features(plain, scores, shown, asked)
        small = scores.size < SMALL
        sentence = np.flatnonzero(~short & ~small)
        places = {
            FIRST: (sentence, slice(0, 1)),
            LATER: (sentence, slice(1, None)),
            SHORT: (np.flatnonzero(short), slice(None)),
            WORDS: (np.flatnonzero(short), slice(None)),  # either is there
        }
        for kind, (rows, columns) in places.items():
            known, read = self.second.get(kind), read_by(kind, table)
            if known is not None and read.shape[-1] == len(known.weights):
                said = known.probability(read[rows, columns])
                found[rows, columns] = np.minimum(said, self.ceiling)
        return found

    def cut(self, unfit, size):
        """The `Cut` at a share `unfit` of shown results that do not fit, in a gallery of `size`
        items; None where nothing can be promised, or no trial is of about this size.

        Learn-then-test, strictest threshold first, until one fails at 0.01: a t-test of one number
        per question, results that do not fit less `unfit` times those shown, with the variance of
        the trial's mean and of the next gallery's.
        """
        unfit = checks.share(unfit, "unfit")
        near = [one for one in self.trials if 1 / NEAR_SIZE <= size / one.size <= NEAR_SIZE]
        if not near:
            return None
        trial = min(near, key=lambda one: abs(np.log(size / one.size)))
        probability, fit = (np.asarray(x, np.float64) for x in (trial.probability, trial.fit))
        # The mean of a trial that is unfit passes so far below zero by chance.
        passes = students_quantile(TEST_LEVEL, len(probability) - 1)
        found = None
        for threshold in np.unique(np.quantile(probability, 1 - np.geomspace(0.005, 1, 40)))[::-1]:
            shown = probability >= threshold
            left = (shown * (1 - fit)).sum(axis=1) - unfit * shown.sum(axis=1)
            count = int(shown.any(axis=1).sum())
            if count < max(10, LEAST_ANSWERED * len(shown)):
                continue
            error = left.std(ddof=1) * np.sqrt(1 / len(left) + 1 / trial.asked)
            if left.mean() / max(error, 1e-12) > passes:
                break
            found = Cut(unfit, float(threshold), count / len(left), trial.size)
        return found


def prior_of(count, size):
    """π, the log odds that a photo of a bank of `size` holds what `count` of them hold."""
    return logit((np.asarray(count, np.float64) + 0.25) / (size + 0.5))


def priors(texts, senses, bank):
    """π of short questions, NaN of sentences, `(Q,)`; of texts, what their words may be called, and
    a `CaptionBank`."""
    found = [
        prior_of(bank.count(own), bank.size) if is_short(text) else np.nan
        for text, own in zip(texts, senses, strict=True)
    ]
    return np.array(found)


def opinion_features(plain, scores, shown, asked):
    """What the second opinion may read of results `(Q, k)`, a dict of arrays: log odds of `plain`,
    scores and gaps, sizes, ranks, the prior of a short question, and
    `halo_search.confidence.bank.COLUMNS`.
    """
    top, deviation = scores.top, np.maximum(np.sqrt(scores.variance), 1e-12)
    best, others = top[:, 0], top[:, 1:] if top.shape[1] > 1 else top
    prior = np.zeros(len(top)) if asked.prior is None else np.nan_to_num(asked.prior)
    found = {
        "odds": np.clip(logit(np.clip(plain, 1e-9, 1 - 1e-9)), -ODDS, ODDS),
        "score": shown,
        "z_score": (shown - scores.mean[:, None]) / deviation[:, None],
        "gap_5": (best - others[:, :4].mean(axis=1))[:, None],
        "gap_20": (best - others.mean(axis=1))[:, None],
        "size": np.log(scores.size)[:, None],
        "rank": np.log(np.arange(1, shown.shape[1] + 1))[None],
        "prior": prior[:, None],
    }
    found = {name: np.broadcast_to(values, shown.shape) for name, values in found.items()}
    if asked.near is not None:
        found |= {name: asked.near[..., place] for place, name in enumerate(COLUMNS)}
    return found


def read_by(kind, table):
    """What a kind of `READS` reads of a table, as far as it is there, `(Q, k, columns)`."""
    return np.stack([table[name] for name in READS[kind] if name in table], axis=-1)
