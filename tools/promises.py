"""Draws each guarantee beside what was measured: docs/images/promises.png, light and dark.

    python -m tools.promises

From docs/results/tables: coverage of the first k and of the set above a score, and how often a
certified cut-off or threshold is broken.
"""

import csv
import re
from pathlib import Path

from matplotlib.figure import Figure

from tools import dark

ROOT = Path(__file__).parent.parent
TABLES = ROOT / "docs" / "results" / "tables"
NUMBER = re.compile(r"[\d.]+")
ASSUMES = (
    "assumes questions like the probes,\nand this gallery",
    "assumes questions like the probes,\nand this gallery",
    "assumes galleries like the validation\nphotos, half to twice their size",
    "assumes questions like the probes:\nby class they are not",
)


def main():
    print(*dark.save_both(figure(), ROOT / "docs" / "images" / "promises.png"))


def figure() -> Figure:
    """Four panels, one per guarantee; the dashed line is what it promises."""
    drawn = Figure(figsize=(12, 3.8))
    first, above, cut, wrong = drawn.subplots(1, 4)
    drawn.subplots_adjust(left=0.06, right=0.99, top=0.9, bottom=0.32, wspace=0.45)
    coverage(first)
    birds = {row["Promise"][:20]: row for row in rows("promises_birds.csv")}
    score = next(row for name, row in birds.items() if name.startswith("the set above"))
    for place, side in enumerate(("i2t", "t2i")):
        mean, low, high = map(float, NUMBER.findall(score[side])[:3])
        above.errorbar(place, mean, [[mean - low], [high - mean]], fmt="o", capsize=4)
    bound(above, 0.9, "All above a score", "included")
    above.set_xticks((0, 1), ("i2t", "t2i"))
    above.set_ylim(0.8, 1)
    above.set_xlim(-0.6, 1.6)
    found = [row for row in rows("cut_offs.csv") if row["Promised unfit"] == "0.3"]
    cut.bar([row["Photos"] for row in found], [float(row["Broken"]) for row in found], width=0.5)
    bound(cut, 0.1, "At most 30 % do not fit", "galleries that break it")
    cut.set_xlabel("photos", fontsize=9)
    broken = [row for row in rows("promises_birds.csv") if "broken, of" in row["Promise"]]
    broken += [row for row in rows("promises_birds.csv") if "*classes*" in row["Promise"]]
    for place, row in enumerate(broken):
        values = [float(NUMBER.findall(row[side])[0]) / 100 for side in ("i2t", "t2i")]
        wrong.bar([place - 0.2, place + 0.2], values, width=0.35)
    bound(wrong, 0.1, "At most 30 % wrong answers", "divisions that break it")
    wrong.set_xticks((0, 1), ("by question", "by class"))
    for axes, text in zip((first, above, cut, wrong), ASSUMES, strict=True):
        axes.text(0.5, -0.25, text, ha="center", va="top", transform=axes.transAxes, fontsize=9)
    return drawn


def coverage(axes):
    """The first k of galleries of photos and of birds, both directions."""
    for model, marker in (("photos_pfe", "o"), ("birds_infonce", "s")):
        held = [
            float(NUMBER.findall(row["holds"])[0])
            for row in rows("wanted.csv")
            if row["model"] == model
        ]
        axes.plot(range(len(held)), held, marker, label=model.partition("_")[0], alpha=0.8)
    bound(axes, 0.9, "The first k", "lists with the item in mind")
    axes.set_ylim(0.8, 1)
    axes.set_xticks([])
    axes.set_xlabel("galleries", fontsize=9)
    axes.legend(fontsize=8, loc="lower right")


def bound(axes, promised, title, label):
    axes.axhline(promised, linestyle="--", linewidth=1, color="gray")
    axes.tick_params(labelsize=9)
    axes.set_title(title, fontsize=10)
    axes.set_ylabel(label, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)


def rows(name):
    with (TABLES / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    main()
