"""The pictures of docs that follow from the packaged preset and from kept results.

python -m tools.pictures        # into docs/images
"""

import json
from pathlib import Path

import numpy as np

import zoo
from zoo import data, evaluation, report

ROOT = Path(__file__).parent.parent
OF_KEPT_RUNS = {
    "pcmepp_recall_by_uncertainty.png": "pcmepp-seed-0",
    "pcmepp_scenes_recall_by_uncertainty.png": "pcmepp_scenes_6000-seed-0",
}


def main():
    out = ROOT / "docs" / "images"
    for name, run in OF_KEPT_RUNS.items():
        found = json.loads((ROOT / "docs" / "runs" / run / "metrics.json").read_text())
        bins = {side: _arrays(found["uncertainty"][side]) for side in ("i2t", "t2i")}
        print(report.save(report.recall_by_uncertainty_plot(**bins), out / name))
    model = zoo.from_preset("toy_birds_pcme")
    split = data.open(zoo.list_presets()["toy_birds_pcme"]["data"], "test")
    encoded = evaluation.encode(model, split.records, split.source)
    found = evaluation.evaluate(model, encoded, ("own",))["uncertainty"]
    bins = {side: found[side]["recall_by_uncertainty"] for side in ("i2t", "t2i")}
    print(report.save(report.recall_by_uncertainty_plot(**bins), out / "recall_by_uncertainty.png"))
    fits = report.uncertainty_against_matches(
        encoded.caption_uncertainty, split.true_matches, encoded.measure
    )
    print(report.save(fits, out / "ambiguity.png"))


def _arrays(quality):
    bins = quality["recall_by_uncertainty"]
    return {name: np.asarray(values) for name, values in bins.items()}


if __name__ == "__main__":
    main()
