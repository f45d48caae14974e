"""Draws what `search_recall` measured: `python -m benchmarks.search_plot JSON OUT.png [RUN …]`.

With run folders, or presets, of Gaussian models the spread of their uncertainties over the embedded
Toy Birds is marked on the same axis.
"""

import argparse
import json
import tempfile
from pathlib import Path

from matplotlib.ticker import NullFormatter

import zoo
from benchmarks.search_recall import relative_spread
from zoo.data import cub, toy_birds
from zoo.data.records.sources import Pictures
from zoo.evaluation.retrieval import encode
from zoo.report.style import GREY, MARKERS, PALETTE, new_figure, save, styled

# One colour and marker a way of searching, in every panel.
WAYS = ("flat, D+1", "HNSW", "IVF-PQ", "50 by σ", "100 by σ", "1000 by σ", "ef = 64")
LINES = {
    "HNSW_tuned": "HNSW on D+1, ef tuned",
    "HNSW_ef_64": "HNSW on D+1, ef = 64",
    "μ_then_1000": "μ, then 1,000 by σ",
    "μ_then_100": "μ, then 100 by σ",
    "μ_then_50": "μ, then 50 by σ",
    "IVF-PQ": "IVF-PQ on D+1, 32 bytes",
}


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.search_plot", description=__doc__.split("\n")[0]
    )
    parser.add_argument("measured", type=Path, help="what `--out` of search_recall wrote")
    parser.add_argument("out", type=Path, help="the figure")
    parser.add_argument("runs", nargs="*", help="run folders or presets of Gaussian models")
    options = parser.parse_args(arguments)
    reports = json.loads(options.measured.read_text(encoding="utf-8"))
    trained = {Path(run).name: trained_spread(zoo.from_preset(run)) for run in options.runs}
    for name, spread in trained.items():
        print(f"{name}: spread {spread:.3g}")
    save(figure(reports, trained), options.out)


@styled
def figure(reports, trained):
    """Recall by the spread of uncertainties, and recall against speed."""
    curves = [report for report in reports if "index" in report["rows"][0]]
    spread = next(r for r in reports if "HNSW_tuned" in r["rows"][0])
    drawn = new_figure(5.0 * (1 + len(curves)), 4.8)
    axes = drawn.subplots(1, 1 + len(curves), squeeze=False)[0]
    _by_spread(axes[0], spread, trained)
    for axis, report in zip(axes[1:], curves, strict=True):
        _against_speed(axis, report)
    return drawn


def trained_spread(model):
    """`relative_spread` of the images of Toy Birds for their captions as queries."""
    with tempfile.TemporaryDirectory() as folder:
        toy_birds.generate(folder, seed=0)
        records, _ = cub.load(folder, split="test", verbose=False)
        size = model.image_encoder.inputs[0].shape[1]
        split = encode(model, records, Pictures(records, size))
    return relative_spread(split.images, split.captions)


def _by_spread(axis, report, trained):
    rows = report["rows"]
    x = [row["spread"] for row in rows]
    for key, label in LINES.items():
        axis.plot(x, [row[key] for row in rows], label=label, **_look(label))
    for name, spread in trained.items():
        axis.axvline(spread, color=GREY, linestyle="--", linewidth=1)
        axis.annotate(
            name, (spread, 0.02), rotation=90, color="#4D4D4D", fontsize=8, ha="right", va="bottom"
        )
    axis.set(
        ylim=(0, 1.03),
        xlabel="spread of Σσ² ÷ spread of ‖μ − μ′‖²",
        ylabel="recall@10 of CSD",
        title=report["title"].split(", ")[-1] + ", as uncertainties vary more",
    )
    _logarithmic(axis, (0.1, 1, 10))
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)


def _against_speed(axis, report):
    rows = report["rows"]
    fastest = max(row["queries_per_cpu_second"] for row in rows)
    for row in rows:
        x, y = row["queries_per_cpu_second"], row["recall"]
        look = _look(row["index"])
        axis.plot(x, y, markersize=8, linestyle="", label=row["index"], **look)
    least = min(row["recall"] for row in rows)
    axis.set(
        xlim=(0, 1.1 * fastest),
        ylim=(least - 0.05, 1.02),
        xlabel="queries per second of CPU",
        ylabel="recall@10 of CSD",
        title=report["title"].split(", ", 1)[1],
    )
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)


def _look(label):
    """The colour and the marker of a way of searching: the last of `WAYS` that its name has."""
    name = label.replace(",0", "0")
    place = max(place for place, way in enumerate(WAYS) if way in name)
    return {"color": PALETTE[place], "marker": MARKERS[place]}


def _logarithmic(axis, ticks):
    axis.set_xscale("log")
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.xaxis.set_minor_formatter(NullFormatter())


if __name__ == "__main__":
    main()
