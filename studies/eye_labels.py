"""What is said of what people type, and what fits by eye: questions that were not learnt from.

    python -m studies.eye_labels photos_pfe ../shared/data

Learns the second opinion of short questions on the labels of all but an eighth of the questions, as
`tools.preset_fits` does, and reports on the questions left out; all eighths report. Over Flickr8k's
test photos, COCO's subset, and those of it that training has not seen. Ranks are those of today's
answers, of which only labelled pairs count.
"""

import numpy as np

from halo_search import open_tower
from halo_search.confidence.fits import SHORT, Fits, read_by
from halo_search.confidence.words import packaged_bank
from halo_search.embeddings.arrays import take
from studies.people_data import Encoded, labels_of, parser_of
from studies.statistics import auroc, weighted_auroc
from zoo import evaluation
from zoo.cli import run
from zoo.data import packaged_photos
from zoo.evaluation import short_fits
from zoo.evaluation.captioned import matrices_of
from zoo.evaluation.learner import Learner

FOLDS = 8
NAMES = "Flickr8k's test photos", "COCO's subset", "COCO, not trained on"
LISTED = (0.4, 0.5)  # probabilities from which a list of all that fits begins


def main(argv=None):
    parser = parser_of("eye_labels", __doc__, "flickr8k and coco_subset")
    options = parser.parse_args(argv)
    learner, galleries = learner_of(options)
    predictions = left_out(learner, galleries, options.seed)
    print(
        "| Photos | pairs | log loss | AUC of firsts | of all | first | 2–12 | nothing fits | 5+ |"
    )
    print("|---" * 9 + "|")
    for name, gallery, predicted in zip(NAMES, galleries, predictions, strict=True):
        print(row(name, gallery, predicted, ranks_of(learner, gallery)), flush=True)
    fit, weights, predicted = galleries[0].fit, galleries[0].weights, predictions[0]
    print("\n| a list from | of what fits | does not fit |\n|---|---|---|")
    for least in LISTED:
        share, unfit = of_list(predicted, fit, weights, least)
        print(f"| {least} | {share:.2f} | {unfit:.2f} |")
    return 0


def learner_of(options):
    """A `zoo.evaluation.learner.Learner` of the preset, and the labelled galleries: the first two
    teach and are asked, the third is asked alone."""
    name, cache = options.model, options.cache
    data = Encoded.of(options.folder / "flickr8k", name, "validation", cache)
    labelled = [gallery.of_short() for gallery in labels_of(options.folder, name, cache)]
    files = sorted(path.name for path in (options.folder / "coco_subset/images").iterdir())
    new = np.flatnonzero(np.isin(files, [path.name for path in packaged_photos()]))
    coco = labelled[1]
    pairs = np.isin(coco.photos, new)
    unseen = coco._replace(
        images=take(coco.images, new),
        questions=coco.questions[pairs],
        photos=np.searchsorted(new, coco.photos[pairs]),
        fit=coco.fit[pairs],
        weights=coco.weights[pairs],
    )
    encode = open_tower(name, "captions").of_texts
    captioned = data.captioned(evaluation.probes_of(name), encode, "validation")
    rng, matrices = np.random.default_rng(options.seed), matrices_of(captioned)
    galleries = [*labelled, unseen]
    bank = packaged_bank()
    learner = Learner(captioned, "t2i", bank, rng, matrices, galleries)
    learner.correct()
    return learner, galleries


def left_out(learner, galleries, seed):
    """What is said of the pairs of each gallery, `(P,)`, by an opinion learnt without their
    question."""
    fits = Fits(learner.rho())
    parts = short_fits.labelled_parts(learner, fits)
    texts = sorted({text for gallery in galleries for text in gallery.texts})
    order = np.random.default_rng(seed).permutation(len(texts)) % FOLDS
    fold = dict(zip(texts, order, strict=True))
    folds = [
        np.array([fold[gallery.texts[row]] for row in gallery.questions]) for gallery in galleries
    ]
    predictions = [np.empty(len(gallery.fit)) for gallery in galleries]
    for out in range(FOLDS):
        taught = []
        for (table, fit, weights), folds_of_rows in zip(parts[:2], folds[:2], strict=True):
            is_training = folds_of_rows != out
            rows = {name: values[is_training] for name, values in table.items()}
            taught.append((rows, fit[is_training], weights[is_training]))
        opinion = learner.opinion(SHORT, taught)
        for predicted, (table, *_), folds_of_rows in zip(predictions, parts, folds, strict=True):
            asked = folds_of_rows == out
            predicted[asked] = opinion.probability(read_by(SHORT, table)[asked, 0])
    return predictions


def ranks_of(learner, gallery):
    """The rank of each labelled pair in the answer, from 0."""
    rows, *_ = short_fits.gallery_of(learner, gallery)
    return (rows[gallery.questions] > rows[gallery.questions, gallery.photos][:, None]).sum(axis=1)


def row(name, gallery, predicted, ranks):
    """A row of the table: weighted by what each pair stands for, but for ranks."""
    fit, weights = gallery.fit, gallery.weights / gallery.weights.sum()
    loss = -(weights @ (fit * np.log(predicted) + (1 - fit) * np.log(1 - predicted)))
    count = np.bincount(gallery.questions, fit, len(gallery.texts))[gallery.questions]
    first, sure = ranks == 0, fit != 0.5
    firsts = auroc(predicted[first & (fit == 1)], predicted[first & (fit == 0)])
    places = (first, (ranks > 0) & (ranks < 12), first & (count == 0), first & (count >= 5))
    cells = [
        f"{predicted[part].mean():.2f} / {fit[part].mean():.2f}" if part.any() else "–"
        for part in places
    ]
    every = weighted_auroc(predicted[sure], fit[sure], weights[sure])
    return (
        f"| {name} | {len(fit)} | {loss:.3f} | {firsts:.2f} | {every:.2f} | {' | '.join(cells)} |"
    )


def of_list(predicted, fit, weights, least):
    """Of all that fits, what a list from a probability on has; and what in it does not fit."""
    shown = weights * (predicted >= least)
    return (shown @ fit) / (weights @ fit), (shown @ (1 - fit)) / shown.sum()


if __name__ == "__main__":
    run(main)
