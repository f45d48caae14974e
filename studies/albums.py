"""What is said of the first photo in albums, and what fits: parts of Flickr8k's test photos.

    python -m studies.albums photos_pfe ../shared/data/flickr8k

All captions of the photos of a part ask it: twelve clusters (k-means with four and with eight
centres) and twelve random parts of 50 to 500 photos. All of these questions have an answer there.
True is what people said, and an oracle of captions where nobody did.
"""

import time

import numpy as np
from scipy.cluster.vq import kmeans2

from halo_search.embeddings.arrays import centres, take, unit
from halo_search.retriever import Retriever
from halo_search.retriever.judging import facts
from halo_search.retriever.questions import Questions
from studies.judgments import Judgments
from studies.people_data import Encoded, parser_of
from zoo.cli import run
from zoo.evaluation.relevance import relevance, score_scale

CLUSTERS, SIZES = (4, 8), np.geomspace(50, 500, 12)


def main(argv=None):
    options = parser_of("albums", __doc__, "Flickr8k and judgments.csv").parse_args(argv)
    data = Encoded.of(options.folder, options.model, "test", options.cache)
    truth, retriever = truth_of(data, options.folder), Retriever.build(options.model, data.images)
    seconds, off = [], {"cluster": [], "random": []}
    print("| part | photos | said | true | standard error |\n|---|---|---|---|---|")
    for kind, photos in parts_of(data.images, options.seed):
        rows = np.flatnonzero(np.isin(data.owners, photos))
        part, start = retriever.over(retriever.index.part(photos)), time.process_time()
        judge = part.judge
        seconds.append(time.process_time() - start)
        queries, texts = take(data.captions, rows), [data.texts[row] for row in rows]
        scores, ids = part.index.search(queries, 20)
        query_scores = part.index.scores_of(queries, scores, ids, judge.copies)
        questions = Questions(queries, "captions", texts=texts)
        asked = facts(part.calibration, judge, questions, ids[:, :1])
        probabilities = judge.probabilities(query_scores, query_scores.top[:, :1], asked)
        probabilities = probabilities["fits"][:, 0]
        true, at = truth[rows, ids[:, 0]], np.searchsorted(photos, data.owners[rows])
        away = np.bincount(at, probabilities - true) / np.bincount(
            at
        )  # a photo's captions hang together
        error = away.std() / np.sqrt(len(photos))
        off[kind].append(abs(probabilities.mean() - true.mean()))
        print(
            f"| {kind} | {len(photos)} | {probabilities.mean():.3f} | {true.mean():.3f} "
            f"| {error:.3f} |"
        )
    for kind, away in off.items():
        print(f"\n{kind}: |said − true| mean {np.mean(away):.3f}, greatest {max(away):.3f}")
    print(f"\n{np.mean(seconds):.2f} CPU-seconds to judge a part")
    return 0


def truth_of(data, folder):
    """How likely each photo fits each caption, `(M, N)`."""
    count, every = len(data.names), np.arange(len(data.texts))
    scores, is_owner = data.scores(every), data.owners[:, None] == np.arange(count)
    scale = score_scale(scores, is_owner)
    matrix = relevance(data.sentences, every, data.owners, count, scores, scale)
    third = np.array([np.flatnonzero(data.owners == photo)[2] for photo in range(count)])
    judged = Judgments.read(folder).matrix(data.names, data.names)
    matrix[third] = np.where(np.isnan(judged), matrix[third], judged)
    return matrix


def parts_of(images, seed):
    """Yields `(kind, rows of photos)`."""
    vectors, rng = unit(centres(images).astype(np.float64)), np.random.default_rng(seed)
    for number in CLUSTERS:
        label = kmeans2(vectors, number, minit="++", seed=seed)[1]
        yield from (("cluster", np.flatnonzero(label == cluster)) for cluster in range(number))
    for size in np.rint(SIZES).astype(int):
        yield "random", np.sort(rng.permutation(len(vectors))[:size])


if __name__ == "__main__":
    run(main)
