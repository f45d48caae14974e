"""What is said of photos that fit, and what people say: galleries of Flickr8k's test photos.

    python -m studies.fits photos_pfe ../shared/data/flickr8k

Learns what fits again by an oracle of the judgments of one half of the photos, and reports on the
other half: an oracle of that half's own judgments is true where nobody judged. Both halves report.
Asks the third caption of photos over galleries of several sizes: with the caption's own photo
there, with another in its place, and a mixture in which 70 % of the questions have an answer: of
the others all that fits is taken out. Also what certified cut-offs keep.
"""

from unittest import mock

import numpy as np

from halo_search import open_tower
from halo_search.confidence import QueryScores
from halo_search.confidence import fits as fitting
from halo_search.confidence.scores import agreement
from halo_search.embeddings.arrays import take
from halo_search.index import Index, scoring
from halo_search.retriever import Retriever
from halo_search.retriever.judging import facts
from halo_search.retriever.questions import Questions
from studies import oracle
from studies.judgments import Judgments
from studies.people_data import MODEL, Encoded, parser_of
from studies.statistics import auroc
from zoo import evaluation
from zoo.cli import run
from zoo.evaluation import relevance as reading
from zoo.evaluation.fits import learn_fits, with_fits
from zoo.evaluation.relevance import score_scale
from zoo.evaluation.trial_galleries import TAKEN_OUT
from zoo.metrics.confidence import abstention_auc
from zoo.presets import from_preset

RANKS = ((0, 1), (1, 2), (2, 5), (5, 10), (10, 20))
SHARES = (0.2, 0.3, 0.4)


def main(argv=None):
    options = _parser().parse_args(argv)
    fitting.ANSWERABLE = options.answerable
    halves = list(halves_of(options))
    ranks = " | ".join(f"{low + 1}–{high}" if high > low + 1 else f"{high}" for low, high in RANKS)
    for name, ask in (("own photo there", "there"), ("another in its place", "elsewhere")):
        print(f"\n**{name}** (said / true)\n")
        print(f"| photos | {ranks} | number | worst | wanted | judged alone | nAUC | of all |")
        print("|---" * (len(RANKS) + 7) + "|")
        for size in options.sizes:
            results = [
                getattr(people, ask)(size, options.seed + draw)
                for people in halves
                for draw in range(options.draws if size < people.count else 1)
            ]
            print(row(size, results), flush=True)
    print("\n**70 % of the questions have an answer**\n")
    print("| photos | said | true | log loss | AUROC of absence |\n|---|---|---|---|---|")
    smaller = [size for size in options.sizes if size < halves[0].count]
    for size in smaller:
        print(mixture(size, [people.mixture(size, options) for people in halves]), flush=True)
    print("\n**Certified cut-offs**\n")
    print("| photos | promised unfit | unfit | answered | broken |\n|---|---|---|---|---|")
    for size in smaller:
        certified(size, [people.certified(size, options) for people in halves])
    return 0


def halves_of(options):
    """The `People` of both halves of the test photos, each taught by the other half alone."""
    of_model, of_preset = (
        Encoded.of(options.folder, name, "test", options.cache) for name in (options.model, MODEL)
    )
    probes, judgments = evaluation.probes_of(options.model), Judgments.read(options.folder)
    encode = open_tower(options.model, "captions").of_texts
    table, truth = oracle.pairs_of(of_preset, judgments)
    if options.whole:
        every = oracle.weights_within(table, truth, np.ones(len(truth), bool))
        yield People(of_model, options.model, probes, truth, every)
        return
    first = np.random.default_rng(options.seed).permutation(len(truth)) < len(truth) // 2
    parts = first, ~first
    weights = [oracle.weights_within(table, truth, part) for part in parts]
    validation = Encoded.of(options.folder, options.model, "validation", options.cache)
    for part, true, taught in zip(parts, weights, weights[::-1], strict=True):
        with mock.patch.object(reading, "oracle", return_value=taught):
            learned = learn_fits(
                validation.captioned(probes, encode, "validation"), directions=("t2i",)
            )
        data = of_model.select(np.flatnonzero(part))
        judged = judgments.matrix(data.names, data.names)
        with_learned = with_fits(probes, learned, probes.bank)
        yield People(data, options.model, with_learned, judged, true)


class People:
    """The model's answers to the third caption of each photo, and what fits them."""

    def __init__(self, data, model, probes, judged, weights):
        self.data, self.model, self.probes = data, from_preset(model), probes
        owners, count = data.owners, len(data.names)
        self.count = count
        self.asked = np.array([np.flatnonzero(owners == photo)[2] for photo in range(count)])
        self.queries = take(data.captions, self.asked)
        self.texts = [data.texts[row] for row in self.asked]
        scores = data.scores(self.asked)
        scale, self.judged = score_scale(scores, np.eye(count, dtype=bool)), judged
        with mock.patch.object(reading, "oracle", return_value=weights):
            relevant = reading.relevance(data.sentences, self.asked, owners, count, scores, scale)
        self.truth = np.where(np.isnan(judged), relevant, judged)
        self.is_judged = (~np.isnan(self.judged)).sum(axis=1) > 1

    def retriever(self, photos):
        images = take(self.data.images, photos)
        return Retriever.build(self.model, images, ids=photos, probes=self.probes)

    def there(self, size, seed):
        """Photos and questions about them."""
        photos = np.random.default_rng(seed).permutation(self.count)[:size]
        return self.answers(photos, photos)

    def elsewhere(self, size, seed):
        """Photos, and questions about others."""
        order = np.random.default_rng(seed).permutation(self.count)
        photos = order[: min(size, self.count // 2)]
        return self.answers(photos, order[len(photos) :][: len(photos)])

    def answers(self, photos, questions):
        """What is said and what is so, of the captions of some photos over a gallery of others."""
        retriever = self.retriever(photos)
        queries, texts = take(self.queries, questions), [self.texts[row] for row in questions]
        _, ids = retriever.index.search(queries, min(20, len(photos)))
        answers = retriever.judged(queries, "captions", texts)
        has_fits = np.array([answer.fits is not None for answer in answers])
        answers = [answer for answer in answers if answer.fits is not None]
        fits = np.array([answer.fits for answer in answers])
        truth = self.truth[questions[has_fits, None], ids[has_fits]]
        judged = self.judged[questions[has_fits, None], ids[has_fits]]
        return {
            "said": fits,
            "fits": retriever.judge.fits,
            "true": truth,
            "judged": judged,
            "number": np.array([answer.number for answer in answers]),
            "fitting": self.truth[np.ix_(questions[has_fits], photos)].sum(axis=1),
            "wanted": np.array([answer.wanted for answer in answers if answer.wanted is not None]),
            "right": ids[has_fits, 0] == questions[has_fits],
            "of_people": self.is_judged[questions[has_fits]],
        }

    def mixture(self, size, options):
        """Of 30 % of the questions all that fits is taken out, and others fill the gallery."""
        predicted, true, present, is_there = [], [], [], []
        for draw in range(options.draws):
            rng = np.random.default_rng(1000 + options.seed + draw)
            order = rng.permutation(self.count)
            photos, absent = order[:size], rng.random(size) < 0.3
            retriever = self.retriever(photos)
            judge = retriever.judge
            queries, texts = take(self.queries, photos), [self.texts[row] for row in photos]
            pool = Index.build(
                take(self.data.images, order),
                self.model.similarity,
                ids=order,
                hubs=retriever.index.hubs,
            )
            scores, ids = pool.search(queries, self.count)
            place = np.argsort(order)  # of a photo in the order
            parts = []
            for i, question in enumerate(photos):
                inside = place[ids[i]] < size
                if absent[i]:
                    inside &= self.truth[question, ids[i]] < TAKEN_OUT
                chosen = np.flatnonzero(inside)
                parts.append((scores[i, chosen], ids[i, chosen]))
            query_scores, top, fits, ids = _scores(parts, self.truth, photos, retriever, queries)
            questions = Questions(queries, "captions", texts=texts)
            asked = facts(retriever.calibration, judge, questions, ids)
            probabilities = judge.probabilities(query_scores, top, asked)
            predicted.append(probabilities["fits"][:, 0])
            true.append(fits)
            present.append(probabilities["fits"][:, 0])
            is_there.append(~absent)
        return predicted, true, present, is_there

    def certified(self, size, options):
        """What certified cut-offs keep over splits of the questions' photos: pairs by share."""
        predicted = {share: [] for share in SHARES}
        for draw in range(options.splits // 2):
            drawn = self.there(size, 5000 + options.seed + draw)
            for share in SHARES:
                cut = drawn["fits"].cut(share, size)
                if cut is not None:
                    shown = drawn["said"] >= cut.threshold
                    unfit = ((1 - drawn["true"]) * shown).sum() / max(1, shown.sum())
                    predicted[share].append((unfit, shown.any(axis=1).mean()))
        return predicted


def row(size, parts):
    names = parts[0].keys() - {"fits"}
    joint = {name: np.concatenate([part[name] for part in parts]) for name in names}
    predicted, true = joint["said"], joint["true"]
    cells = [
        f"{predicted[:, low:high].mean():.3f} / {true[:, low:high].mean():.3f}"
        for low, high in RANKS
    ]
    cells.append(f"{joint['number'].mean():.2f} / {joint['fitting'].mean():.2f}")
    away = np.abs(predicted.mean(axis=0) - true.mean(axis=0))
    cells.append(f"{away[0]:.3f}, {away[1:].max():.3f}; mean {away.mean():.3f}")
    cells.append(f"{joint['wanted'].mean():.3f} / {joint['right'].mean():.3f}")
    known = ~np.isnan(joint["judged"][:, 0]) & joint["of_people"]
    first, fits = predicted[known, 0], joint["judged"][known, 0] > 0
    cells.append(f"{first.mean():.3f} / {fits.mean():.3f} (n = {known.sum()})")
    cells.append(f"{abstention_auc(first, fits):.3f}")
    drawn = np.random.default_rng(0).random(len(true)) < true[:, 0]
    return f"| {size:,} | {' | '.join(cells)} | {abstention_auc(predicted[:, 0], drawn):.3f} |"


def mixture(size, halves):
    """A row on what was said of questions of which 30 % have no answer."""
    predicted, true, present, is_there = (
        np.concatenate([part for values in column for part in values])
        for column in zip(*halves, strict=True)
    )
    area = auroc(present[is_there], present[~is_there])
    loss = -(true * np.log(predicted) + (1 - true) * np.log(1 - predicted)).mean()
    return f"| {size:,} | {predicted.mean():.3f} | {true.mean():.3f} | {loss:.3f} | {area:.3f} |"


def certified(size, halves):
    """Prints a row for every promise."""
    for share in SHARES:
        pairs = [pair for half in halves for pair in half[share]]
        if not pairs:
            print(f"| {size:,} | {share} | nothing certified | | |")
            continue
        unfit, answered = np.array(pairs).T
        cells = f"{unfit.mean():.3f} | {answered.mean():.2f} | {(unfit > share).mean():.3f}"
        print(f"| {size:,} | {share} | {cells} |", flush=True)


def _scores(parts, truth, photos, retriever, queries):
    """The `QueryScores` of galleries that differ by question, their best 20, and whether the first
    fits. What is taken out is a small part, so that the mean and variance are those of all."""
    depth = min(20, min(len(scores) for scores, _ in parts))
    sign = scoring.sign(retriever.index.similarity)
    top = np.array([sign * scores[:depth] for scores, _ in parts], np.float64)
    mean = np.array([sign * scores.mean() for scores, _ in parts], np.float64)
    variance = np.array([scores.var() for scores, _ in parts], np.float64)
    size = np.array([len(scores) for scores, _ in parts])
    ids = np.array([ids[:depth] for _, ids in parts])
    beside = ()
    if retriever.index.own_space is not None:
        vectors = retriever.index.answer_vectors(ids)
        beside = agreement(vectors, retriever.index.centre, retriever.judge.copies)
    query_scores = QueryScores(top, mean, variance, size, *beside)
    return query_scores, top, truth[photos, ids[:, 0]], ids


def _parser():
    parser = parser_of("fits", __doc__, "Flickr8k and judgments.csv")
    parser.add_argument("--sizes", nargs="+", type=int, default=[100, 250, 500])
    parser.add_argument("--whole", action="store_true", help="all photos, by the model's own fits")
    parser.add_argument(
        "--answerable",
        type=float,
        default=fitting.ANSWERABLE,
        help="share of questions with an answer that the second opinion is learnt of (default "
        "%(default)s)",
    )
    parser.add_argument("--draws", type=int, default=3, help="of each gallery (default 3)")
    parser.add_argument(
        "--splits", type=int, default=200, help="of the certificates, a half each (200)"
    )
    return parser


if __name__ == "__main__":
    run(main)
