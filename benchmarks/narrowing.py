"""What one suggested word adds to a declined question, on Toy Birds, where the truth is known.

`python -m benchmarks narrowing`. The questions are test captions that the demo declines.
It names what to add something about ("crown"); the asker says what the other captions of the same
image say of it ("a red crown"), of the first suggestion that they answer. Beside it the same asker
adds one of the image's own phrases at random. An answer is right where the first image is of the
caption's class.
"""

import numpy as np

from benchmarks.report import Report
from demo import narrowing, sources
from demo.service import Service

CAPTIONS, SEED = 600, 0


def main():
    gallery, _ = sources.load()
    service, rng = Service(gallery, None), np.random.default_rng(SEED)
    rows = np.sort(rng.choice(len(gallery.captions), CAPTIONS, replace=False))
    asked, without = [], 0
    for row in rows:
        found = service.find_images(gallery.captions[row], results=1)
        if found["answer"]["declined"]:
            said = additions(gallery, row, found["narrow_it_down"], rng)
            asked += [(row, *said)] if said else []
            without += said is None
    chosen = np.array([row for row, _, _ in asked])
    texts = {
        "as asked": [gallery.captions[row] for row in chosen],
        "with a true phrase at random": [text for _, _, text in asked],
        "with a true phrase about the suggestion": [text for _, text, _ in asked],
    }
    report = Report("Declined captions of Toy Birds, and one phrase more", SEED)
    right = {name: answers(service, some, chosen) for name, some in texts.items()}
    for name, (correct, probability, declined) in right.items():
        report.add(
            question=name,
            right=correct.mean(),
            probability=probability.mean(),
            declined=declined.mean(),
        )
    gain = right["with a true phrase about the suggestion"][0].astype(float)
    gain -= right["with a true phrase at random"][0]
    report.notes += [
        f"{len(chosen)} of {CAPTIONS} test captions are declined and can be narrowed; of {without} "
        "others that are declined the image's captions answer no suggestion",
        f"suggestion − random: {gain.mean():+.3f} ± {gain.std(ddof=1) / len(gain) ** 0.5:.3f} "
        "(standard error over the captions)",
    ]
    return report


def additions(gallery, row, groups, rng):
    """The caption with the suggested thing and with a random one, or None."""
    records, caption = gallery.records, gallery.captions[row]
    siblings = np.flatnonzero(records.caption_image == records.caption_image[row])
    said, known = set(caption.lower().split()), {}
    for other in siblings[siblings != row]:
        for phrase in narrowing.phrases(gallery.captions[other], narrowing.common(gallery)):
            if phrase.split()[-1] not in said:
                known.setdefault(phrase.split()[-1], phrase)
    suggested = [group["about"] for group in groups if group["about"] in known]
    if not suggested:
        return None
    stem, about = caption.strip().rstrip("."), rng.choice(sorted(known))
    return f"{stem} and {known[suggested[0]]}", f"{stem} and {known[about]}"


def answers(service, texts, rows):
    """Whether the first image is right, the probability, and whether it is declined."""
    records = service.gallery.records
    embedded = service.gallery.encoders.captions(texts)
    index = service.gallery.index("images", service.gallery.own_similarity)
    labels = records.image_labels[index.search(embedded, 1)[1][:, 0]]
    judged = service.judge(texts, embedded)
    found = [service.find_images(text, results=1)["answer"]["declined"] for text in texts]
    probability = np.array([one.probability or 0.0 for one in judged])
    return labels == records.caption_labels[rows], probability, np.array(found)


if __name__ == "__main__":
    main().print()
