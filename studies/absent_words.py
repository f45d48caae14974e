"""Which single words are refused over photos that show them, and over photos that do not.

    python -m studies.absent_words photos_pfe ../shared/data

Three galleries of 500 of Flickr8k's test photos, asked nouns of its captions and of COCO's, at most
150 of a kind: common ones are in the captions of 1 % of the photos, rare ones in fewer, absent ones
in none. A known word is in a caption of the preset's bank. Refused: "nothing matches" and "not
understood".
"""

import csv
import json

import numpy as np

from halo_search.confidence.judge import ABSENT, NOT_UNDERSTOOD
from halo_search.confidence.words import stem
from halo_search.embeddings.arrays import take
from halo_search.retriever import Retriever
from studies.people_data import Encoded, parser_of
from zoo import evaluation
from zoo.cli import run
from zoo.evaluation.phrases import held_stems, nouns_of

DRAWS, PHOTOS, MOST, COMMON = 3, 500, 150, 0.01


def main(argv=None):
    parser = parser_of("absent_words", __doc__, "flickr8k and coco_annotations")
    options = parser.parse_args(argv)
    print("| Words | number | refused |\n|---|---|---|")
    for kind, (number, share) in refusals(options).items():
        print(f"| {kind} | {number:.0f} | {share:.2f} |")
    return 0


def refusals(options):
    """By kind of words, their mean number and the share that is refused."""
    probes = evaluation.probes_of(options.model)
    test = Encoded.of(options.folder / "flickr8k", options.model, "test", options.cache)
    held = held_stems(test.texts, test.owners, len(test.names))
    words = [nouns_of(captions) for captions in captions_of(options.folder)]
    rng, refused = np.random.default_rng(options.seed), {}
    for draw in range(DRAWS):
        photos = np.random.default_rng(options.seed + draw).permutation(len(held))[:PHOTOS]
        shown = [caption for photo in photos for caption in held[photo]]
        counts = dict(zip(*np.unique(shown, return_counts=True), strict=True))
        images = take(test.images, photos)
        retriever = Retriever.build(options.model, images, ids=photos, probes=probes)
        for kind, some in kinds_of(words, counts, probes.bank).items():
            asked = [some[place] for place in rng.permutation(len(some))[:MOST]]
            verdicts = [answer.verdict for answer in retriever.ask(asked)]
            lost = [verdict in (ABSENT, NOT_UNDERSTOOD) for verdict in verdicts]
            refused.setdefault(kind, []).append((len(some), np.mean(lost)))
    return {kind: tuple(np.mean(shares, axis=0)) for kind, shares in refused.items()}


def captions_of(data):
    """The captions of Flickr8k, and those of COCO's validation split."""
    with open(data / "flickr8k/pairs.csv", encoding="utf-8", newline="") as file:
        flickr = [row["caption"] for row in csv.DictReader(file)]
    text = (data / "coco_annotations/captions_val2017.json").read_text(encoding="utf-8")
    return flickr, [row["caption"] for row in json.loads(text)["annotations"]]


def kinds_of(words, counts, bank):
    """Lists of words by what a gallery shows, `counts` photos of each stem."""
    flickr, coco = words
    number = {word: counts.get(stem(word), 0) for word in flickr | coco}
    known = {word for word in number if len(bank.holding(stem(word)))}
    least = COMMON * PHOTOS
    return {
        "common": sorted(word for word in flickr if number[word] >= least),
        "rare": sorted(word for word in flickr if 0 < number[word] < least),
        "absent, known": sorted(word for word in flickr & known if not number[word]),
        "absent, unknown": sorted(word for word in coco - known if not number[word]),
    }


if __name__ == "__main__":
    run(main)
