"""Contact sheets for labels by eye: which photos fit a question, with ranks and numbers hidden.

    python -m studies.label_sheets photos_pfe ../shared/data sheets --out labels.csv

Asks the questions of `data/fresh_questions.csv` over Flickr8k's first 500 test photos and over the
packaged photos. Writes a sheet for every three questions, six photos each in random order: the
best three by score, and three drawn from ranks 4 to 12, which stand for three pairs each. Also
writes the table to fill in, `fit` empty. Half of the questions of each gallery and kind are kept
for the test (`part`), drawn before anything is learnt.
"""

import csv
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont, ImageOps

from halo_search.retriever.preambles import as_asked
from studies.people_data import fresh_galleries, parser_of
from zoo import Tower
from zoo.cli import run
from zoo.evaluation.gallery import scores_over

QUESTIONS = Path(__file__).parent / "data/fresh_questions.csv"
SURE, DRAWN, LAST = 3, 3, 12  # ranks that all are labelled, ranks drawn, and the last of these
SIDE, ROWS, MARGIN = 300, 3, 34


def main(argv=None):
    parser = parser_of("label_sheets", __doc__, "flickr8k")
    parser.add_argument("sheets", type=Path, help="folder for the sheets")
    parser.add_argument("--out", type=Path, required=True, help="table to write")
    options = parser.parse_args(argv)
    rng = np.random.default_rng(options.seed)
    questions = questions_of(rng)
    pairs, pages = [], []
    for name, (encoded, paths) in fresh_galleries(
        options.folder, options.model, options.cache
    ).items():
        asked = [row for row in questions if row["gallery"] == name]
        texts = [as_asked(row["asked"] or row["question"]) for row in asked]
        embedded = Tower(options.model, "captions").of_texts(texts)
        scores = scores_over(encoded.images, embedded, encoded.similarity, "images")
        for row, row_scores in zip(asked, scores, strict=True):
            order = np.argsort(-row_scores, kind="stable")
            ranks = np.append(
                np.arange(SURE), np.sort(rng.permutation(np.arange(SURE, LAST))[:DRAWN])
            )
            shown = rng.permutation(ranks)
            pages.append((row["question"], [paths[order[rank]] for rank in shown]))
            for rank in shown:
                weight = 1 if rank < SURE else (LAST - SURE) // DRAWN
                photo = paths[order[rank]].name
                pairs.append({**row, "photo": photo, "rank": rank + 1, "weight": weight, "fit": ""})
    options.sheets.mkdir(parents=True, exist_ok=True)
    for start in range(0, len(pages), ROWS):
        sheet(pages[start : start + ROWS]).save(options.sheets / f"{start // ROWS:03d}.png")
    with open(options.out, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, pairs[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(pairs)
    print(f"{len(pairs)} pairs of {len(pages)} questions")
    return 0


def questions_of(rng):
    """The questions, each with its `part`: of each gallery and kind half is `"kept"`."""
    with open(QUESTIONS, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    groups = {}
    for row in rows:
        groups.setdefault((row["gallery"], row["kind"]), []).append(row)
    odd = 0
    for group in groups.values():
        half = (len(group) + odd) // 2  # of odd groups, every second keeps the larger half
        odd = (odd + len(group)) % 2
        for place, row in enumerate(rng.permutation(len(group))):
            group[row]["part"] = "kept" if place < half else "learn"
    return rows


def sheet(pages):
    """A picture of some questions, a row each, with its photos."""
    width = max(len(photos) for _, photos in pages) * SIDE
    page = Image.new("RGB", (width, len(pages) * (SIDE + MARGIN)), "white")
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(24)
    for row, (question, photos) in enumerate(pages):
        top = row * (SIDE + MARGIN)
        draw.text((6, top + 2), question, fill="black", font=font)
        for column, path in enumerate(photos):
            with Image.open(path) as photo:
                shown = ImageOps.contain(photo.convert("RGB"), (SIDE - 6, SIDE - 6))
            page.paste(shown, (column * SIDE, top + MARGIN))
    return page


if __name__ == "__main__":
    run(main)
