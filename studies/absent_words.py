"""Which single words are refused over photos that show them, and over photos that do not.

    python -m studies.absent_words photos_pfe ../shared/data

Three galleries of 500 of Flickr8k's test photos, asked nouns of its captions and of COCO's, at most
150 of a kind: common ones are in the captions of 1 % of the photos, rare ones in fewer, absent ones
in none. A known word is in a caption of the preset's bank. Refused: "nothing matches" and "not
understood".

Some unknown words are misspellings in COCO's captions. A word that is asked as another one, which
other captions of most photos of the word hold, is a misspelling and no absent word: such words are
a kind of their own. A word that is corrected to anything else counts as absent. (This rule was
written before it was measured.)
"""

import csv
import json

import numpy as np

from halo_search.confidence.judge import ABSENT, NOT_UNDERSTOOD
from halo_search.confidence.words import stem, stems
from halo_search.embeddings.arrays import take
from halo_search.retriever import Retriever
from studies.people_data import Encoded, parser_of
from zoo import evaluation
from zoo.cli import run
from zoo.evaluation.phrases import held_stems, nouns_of

DRAWS, PHOTOS, MOST, COMMON = 3, 500, 150, 0.01
UNKNOWN, MISSPELT = "absent, unknown", "misspelt"
KINDS = "common", "rare", "absent, known", UNKNOWN, MISSPELT


def main(argv=None):
    parser = parser_of("absent_words", __doc__, "flickr8k and coco_annotations")
    options = parser.parse_args(argv)
    print("| Words | number | refused |\n|---|---|---|")
    shares = refusals(options)
    for kind in KINDS:
        print(f"| {kind} | {shares[kind][0]:.0f} | {shares[kind][1]:.2f} |")
    return 0


def refusals(options):
    """By `KINDS` of words, their mean number and the share that is refused."""
    probes = evaluation.probes_of(options.model)
    test = Encoded.of(options.folder / "flickr8k", options.model, "test", options.cache)
    held = held_stems(test.texts, test.owners, len(test.names))
    flickr, coco = flickr_captions(options.folder), coco_captions(options.folder)
    words = nouns_of(flickr), nouns_of([caption for _, caption in coco])
    stems_of = stems_by_photo(coco)
    rng, refused = np.random.default_rng(options.seed), {kind: [] for kind in KINDS}
    for draw in range(DRAWS):
        photos = np.random.default_rng(options.seed + draw).permutation(len(held))[:PHOTOS]
        shown = [caption for photo in photos for caption in held[photo]]
        counts = dict(zip(*np.unique(shown, return_counts=True), strict=True))
        images = take(test.images, photos)
        retriever = Retriever.build(options.model, images, ids=photos, probes=probes)
        for kind, some in kinds_of(words, counts, probes.bank).items():
            asked = [some[place] for place in rng.permutation(len(some))[:MOST]]
            answers = retriever.ask(asked)
            if kind == UNKNOWN:
                is_misspelt = [is_misspelling(one, stems_of) for one in answers]
                refused[MISSPELT].append(_refused(answers, is_misspelt))
                answers = [
                    one for one, misspelt in zip(answers, is_misspelt, strict=True) if not misspelt
                ]
                print_answered(answers)
            refused[kind].append(_refused(answers, [True] * len(answers)))
    return {kind: tuple(np.mean(shares, axis=0)) for kind, shares in refused.items()}


def _refused(answers, is_counted):
    """The number of counted answers, and the share of these that is refused."""
    counted = [one for one, is_one in zip(answers, is_counted, strict=True) if is_one]
    refused = [one.verdict in (ABSENT, NOT_UNDERSTOOD) for one in counted]
    return len(counted), np.mean(refused) if counted else 0.0


def is_misspelling(answer, stems_of):
    """Whether a word was asked as another one, which other captions of most photos of it hold;
    `stems_of` holds the sets of stems of each photo's captions."""
    if answer.asked is None:
        return False
    typed, asked = stem(answer.question), stem(answer.asked)
    others = [
        any(asked in held for held in captions if typed not in held)
        for captions in stems_of.values()
        if any(typed in held for held in captions)
    ]
    return sum(others) > len(others) / 2


def print_answered(answers):
    """Prints absent words that are answered, with what was asked for them."""
    answered = [one for one in answers if one.verdict not in (ABSENT, NOT_UNDERSTOOD)]
    listed = ", ".join(f"{one.question} ({one.asked or 'as typed'})" for one in answered)
    print(f"answered: {listed}")


def flickr_captions(data):
    """The captions of Flickr8k."""
    with open(data / "flickr8k/pairs.csv", encoding="utf-8", newline="") as file:
        return [row["caption"] for row in csv.DictReader(file)]


def coco_captions(data):
    """`(photo, caption)`s of COCO's validation split."""
    text = (data / "coco_annotations/captions_val2017.json").read_text(encoding="utf-8")
    return [(row["image_id"], row["caption"]) for row in json.loads(text)["annotations"]]


def stems_by_photo(captions):
    """By photo of `(photo, caption)`s, the set of stems of each of its captions."""
    held = {}
    for photo, caption in captions:
        held.setdefault(photo, []).append(frozenset(stems(caption)))
    return held


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
        UNKNOWN: sorted(word for word in coco - known if not number[word]),
    }


if __name__ == "__main__":
    run(main)
