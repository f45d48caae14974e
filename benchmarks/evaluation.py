"""Evaluation at COCO's size: the whole table, CIDEr-D and ASP of all pairs, ranks by counting.

`python -m benchmarks evaluation`. Random embeddings, captions and annotations with the sizes of
COCO's Karpathy test split (5,000 images, 25,000 captions). A peer that would take hours is run on
a part of the queries and scaled; that is exact, since it treats queries one after the other.
"""

import collections
import json
import math
import tempfile
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from benchmarks.report import Report
from benchmarks.timing import compare, peak_memory
from zoo.metrics import (
    LabelRelevance,
    PairwiseSimilarity,
    average_semantic_precision,
    cider,
    coco_benchmark,
    evaluate_retrieval,
)
from zoo.similarities import ClosedFormSampledDistance

SEED = 0
IMAGES, CAPTIONS, DIM = 5000, 25000, 1024
IMAGE_IDS, CAPTION_IDS = np.arange(IMAGES), np.arange(CAPTIONS)
OWN = CAPTION_IDS // 5
PART = 50  # queries of a peer that is scaled
THIS = "benchmarks.evaluation"


def main():
    return [whole_table(), caption_scores(), semantic_precision(), ranks()]


def whole_table():
    report = Report(f"COCO table from embeddings, {IMAGES:,} × {CAPTIONS:,}, D = {DIM}", SEED)
    with tempfile.TemporaryDirectory() as folder:
        write_annotations(Path(folder))
        measured = compare({"table": coco_table(folder)}, repeats=1, warmup=0)["table"]
        memory = peak_memory(f"{THIS}:coco_table", folder=folder)
    report.add(
        what="5K, 1K, CxC, ECCV Caption and PMRP by CSD",
        seconds=measured.seconds,
        cpu_seconds=measured.cpu_seconds,
        peak_gib=memory / 2**30,
    )
    report.notes.append("peak: beyond the embeddings; includes the 0.47 GiB matrix that it keeps")
    return report


def caption_scores():
    groups, candidates = captions()
    measured = compare({"ours": cider_d(), "loops": loops(groups, candidates)}, 1, 0)
    ours, peer = measured["ours"], measured["loops"].scaled(IMAGES * CAPTIONS / PART)
    report = Report(f"CIDEr-D of {CAPTIONS:,} captions against {IMAGES:,} groups of five", SEED)
    memory = peak_memory(f"{THIS}:cider_d")
    report.add(what="sparse product", seconds=ours.seconds, peak_gib=memory / 2**30)
    ratio = peer.seconds / ours.seconds
    report.add(what=f"loops, {PART} pairs scaled", seconds=peer.seconds, times_ours=ratio)
    return report


def semantic_precision():
    ours = asp()
    similarity, semantic = random_scores(), random_scores(SEED + 1)

    def peer():
        for row in range(PART):
            ranks = rankdata(-similarity[row]), rankdata(-semantic[row])
            (np.minimum(*ranks) / np.maximum(*ranks)).mean()
        for column in range(PART * 5):
            ranks = rankdata(-similarity[:, column]), rankdata(-semantic[:, column])
            (np.minimum(*ranks) / np.maximum(*ranks)).mean()

    measured = compare({"ours": ours, "peer": peer}, repeats=1, warmup=0)
    scaled = measured["peer"].scaled(IMAGES / PART)
    report = Report(f"ASP, {IMAGES:,} × {CAPTIONS:,}, both directions", SEED)
    memory = peak_memory(f"{THIS}:asp")
    seconds = measured["ours"].seconds
    report.add(what="zoo.metrics", seconds=seconds, peak_gib=memory / 2**30)
    report.add(
        what=f"scipy.stats.rankdata, {PART} of {IMAGES} queries scaled",
        seconds=scaled.seconds,
        times_ours=scaled.seconds / seconds,
    )
    report.notes.append("peak: beyond the two float32 matrices of 0.47 GiB each")
    return report


def ranks():
    similarity = random_scores()
    relevance = LabelRelevance(IMAGE_IDS, OWN)
    measured = compare(
        {
            "ours": lambda: evaluate_retrieval(similarity, relevance),
            "argsort": lambda: (
                np.argsort(-similarity, axis=1),
                np.argsort(-similarity.T, axis=1),
            ),
        },
        repeats=1,
        warmup=0,
    )
    report = Report(f"Recall, R-Precision and mAP@R, {IMAGES:,} × {CAPTIONS:,}", SEED)
    ours, peer = measured["ours"].seconds, measured["argsort"].seconds
    memory = peak_memory(f"{THIS}:counting")
    report.add(what="by counting", seconds=ours, peak_gib=memory / 2**30)
    memory = peak_memory(f"{THIS}:full_argsort")
    report.add(
        what="a full argsort, without any metric",
        seconds=peer,
        peak_gib=memory / 2**30,
        times_ours=peer / ours,
    )
    return report


def coco_table(folder):
    rng = np.random.default_rng(SEED)
    means = rng.normal(size=(IMAGES, DIM)).astype(np.float32)
    images = gaussians(means, rng)
    noisy = means[OWN] + 6 * rng.normal(size=(CAPTIONS, DIM)).astype(np.float32)
    pairs = PairwiseSimilarity(images, gaussians(noisy, rng), ClosedFormSampledDistance())
    instances = Path(folder) / "instances.json"
    return lambda: coco_benchmark(pairs, IMAGE_IDS, CAPTION_IDS, folder, instances=instances)


def gaussians(means, rng):
    means = means / np.linalg.norm(means, axis=1, keepdims=True)
    return {
        "mean": means,
        "log_variance": rng.normal(-8, 0.3, size=means.shape).astype(np.float32),
    }


def cider_d():
    groups, candidates = captions()
    return lambda: cider(groups, candidates)


def asp():
    similarity, semantic = random_scores(), random_scores(SEED + 1)
    return lambda: average_semantic_precision(similarity, semantic)


def counting():
    similarity, relevance = random_scores(), LabelRelevance(IMAGE_IDS, OWN)
    return lambda: evaluate_retrieval(similarity, relevance)


def full_argsort():
    similarity = random_scores()
    return lambda: np.argsort(-similarity, axis=1)


def random_scores(seed=SEED):
    return np.random.default_rng(seed).random((IMAGES, CAPTIONS), dtype=np.float32)


def captions():
    """Five captions an image: words by Zipf's law, 8 to 20 of them, and half of them shared."""
    rng = np.random.default_rng(SEED)
    words = np.array([f"w{i}" for i in range(9000)])
    frequency = 1 / np.arange(1, len(words) + 1)
    frequency /= frequency.sum()
    groups = []
    for _ in range(IMAGES):
        topic = rng.choice(words, 12, p=frequency)
        group = []
        for length in rng.integers(8, 21, 5):
            shared = rng.choice(topic, length)
            other = rng.choice(words, length, p=frequency)
            group.append(" ".join(np.where(rng.random(length) < 0.5, shared, other)))
        groups.append(group)
    return groups, [caption for group in groups for caption in group]


def loops(groups, candidates):
    """The formula pair by pair, document frequencies prepared, as the usual scorer does it."""

    def ngrams(caption):
        words = caption.split()
        return collections.Counter(
            tuple(words[i : i + n]) for n in range(1, 5) for i in range(len(words) - n + 1)
        )

    frequency = collections.Counter()
    for group in groups:
        frequency.update(set().union(*map(ngrams, group)))

    def vectors(caption):
        parts = [{} for _ in range(4)]
        for ngram, count in ngrams(caption).items():
            idf = math.log(len(groups) / max(frequency[ngram], 1))
            parts[len(ngram) - 1][ngram] = count * idf
        return parts, [math.sqrt(sum(v * v for v in part.values())) for part in parts]

    def score():
        for pair in range(PART):
            ours, our_norms = vectors(candidates[pair])
            for reference in groups[-pair]:
                theirs, their_norms = vectors(reference)
                for order in range(4):
                    a, b = ours[order], theirs[order]
                    product = sum(min(v, b.get(g, 0)) * b.get(g, 0) for g, v in a.items())
                    product /= our_norms[order] * their_norms[order] or 1

    return score


def write_annotations(folder):
    """Files in ECCV Caption's layout and of its sizes, and COCO instances of 80 classes."""
    rng = np.random.default_rng(SEED)
    np.save(folder / "coco_test_ids.npy", CAPTION_IDS)
    own_pairs = np.stack([OWN, CAPTION_IDS], axis=1)
    more = np.stack([rng.integers(IMAGES, size=10585), rng.integers(CAPTIONS, size=10585)], axis=1)
    asked = rng.permutation(IMAGES)[:1261]
    by_image = np.stack([np.repeat(asked, 18), rng.integers(CAPTIONS, size=1261 * 18)], axis=1)
    asked = rng.permutation(CAPTIONS)[:1332]
    by_caption = np.stack([rng.integers(IMAGES, size=1332 * 8), np.repeat(asked, 8)], axis=1)
    for name, forward, backward in (
        ("original", own_pairs, own_pairs),
        ("cxc", np.concatenate([own_pairs, more]), np.concatenate([own_pairs, more])),
        ("eccv", by_image, by_caption),
    ):
        for kind, pairs in (
            ("image_to_caption", forward),
            ("caption_to_image", backward[:, ::-1]),
        ):
            table = collections.defaultdict(list)
            for key, value in pairs.tolist():
                table[key].append(value)
            (folder / f"{name}_{kind}.json").write_text(json.dumps(table))
    frequency = np.concatenate([[0.54], np.geomspace(0.1, 0.004, 79)])  # people, then the rest
    present = np.argwhere(rng.random((IMAGES, 80)) < frequency).tolist()
    instances = {
        "images": [{"id": i} for i in range(IMAGES)],
        "categories": [{"id": c, "name": str(c)} for c in range(80)],
        "annotations": [
            {"id": k, "image_id": i, "category_id": c} for k, (i, c) in enumerate(present)
        ],
    }
    (folder / "instances.json").write_text(json.dumps(instances))
