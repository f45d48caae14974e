"""PCME++'s table C.4: one model ranked by each similarity, and by FAISS with and without σ.

    python -m studies.approximate_search --run runs/pcmepp_coco --annotations-dir eccv_caption
    python -m studies.approximate_search --smoke          # a preset on Toy Birds, seconds

Chun, "Improved Probabilistic Image-Text Representations", ICLR 2024, appendix C.3. A FAISS index
holds the means. "FAISS, means" ranks by what it finds; "FAISS + σ" ranks the candidates that it
finds again by CSD. The paper prints neither the kind of index nor how many candidates: here it is
HNSW, and `--depth`. What is not among the candidates is ranked behind them, in no order
that could help: as the last. Columns are those of the table where `--annotations-dir` is given,
else retrieval on the whole split. Writes `table.md` and `results.json` into --out.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import faiss
import numpy as np

from halo_search.embeddings.arrays import total_variance
from halo_search.files import write_text
from halo_search.files.written import Written
from studies import columns, opened, seed_table
from zoo import cli, metrics, similarities
from zoo.cli import Size, setting

EXACT = {"Mean only": "squared_euclidean", "2-Wasserstein": "squared_wasserstein_2", "CSD": "csd"}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Which run, and which index."""

    run: str = setting("toy_birds_pcme", "a finished run of Gaussians, or a preset")
    data_dir: Path | None = setting(None, "the run's data set, if it has moved")
    annotations_dir: Path | None = setting(None, "files of ECCV Caption, for COCO's benchmark")
    out: Path = setting(Path("runs/approximate_search"), "folder to write")
    depth: Size = setting(200, "candidates of a query")
    smoke: bool = setting(False, "smoke test with some images only")


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    Written(settings.out).claim("results.json")
    model, split = opened.opened(settings.run, settings.data_dir, settings.smoke)
    encoded = opened.gaussians(settings.run, model, split)
    results = {
        name: measure(encoded, encoded.pairs(similarities.get(key, model)).in_memory(), settings)
        for name, key in EXACT.items()
    }
    results |= {
        f"FAISS, {name}": measure(encoded, index_ranking(encoded, settings, with_sigma), settings)
        for name, with_sigma in (("means", False), ("means, then CSD by σ", True))
    }
    shown = (*columns.PCMEPP, columns.whole_split("recall@1"), columns.whole_rsum())
    cells = {
        name: [seed_table.cell(column, [row]) for column in shown] for name, row in results.items()
    }
    write_text(settings.out / "results.json", json.dumps(results, indent=2) + "\n")
    seed_table.publish(settings, seed_table.of_cells([column.title for column in shown], cells))
    return results


def index_ranking(encoded, settings, with_sigma):
    """What each direction finds by an index of the other side: `(i2t, t2i)` scores of all pairs."""
    sides = encoded.images, encoded.captions
    return tuple(scores_of(*pair, settings, with_sigma) for pair in (sides, sides[::-1]))


def scores_of(queries, gallery, settings, with_sigma):
    """Scores of queries and gallery, `-inf` for what is not among the candidates."""
    count, dim = gallery["mean"].shape
    depth = min(settings.depth, count)
    index = faiss.IndexHNSWFlat(dim, 32)
    index.hnsw.efConstruction, index.hnsw.efSearch = 100, max(128, depth)
    index.add(np.ascontiguousarray(gallery["mean"]))
    distances, rows = index.search(np.ascontiguousarray(queries["mean"]), depth)
    if with_sigma:  # CSD, but for the question's own variance, which orders nothing
        distances = distances + total_variance(gallery)[rows]
    scores = np.full((len(distances), count), -np.inf, np.float32)
    known = rows >= 0
    scores[np.nonzero(known)[0], rows[known]] = -distances[known]
    return scores


def measure(encoded, scores, settings):
    """COCO's benchmark where its files are given, else retrieval on the whole split."""
    records = encoded.records
    directions = scores if isinstance(scores, tuple) else (scores, None)

    def of_pairs(pairs):
        if settings.annotations_dir is None:
            return metrics.evaluate_retrieval(pairs, encoded.relevance)
        ids = records.image_ids, records.caption_ids
        return metrics.coco_benchmark(pairs, *ids, settings.annotations_dir)

    results = of_pairs(directions[0])
    if directions[1] is not None:
        other = of_pairs(directions[1].T)
        results |= {key: value for key, value in other.items() if "t2i" in key}
        for name in [key for key in results if key.endswith("rsum")]:
            truth = name.removesuffix("rsum")
            starts = tuple(f"{truth}{side}_recall@" for side in seed_table.DIRECTIONS)
            results[name] = sum(value for key, value in results.items() if key.startswith(starts))
    if settings.annotations_dir is None:
        return {"retrieval": {"this": results}}
    return {"coco": results}


if __name__ == "__main__":
    cli.run(main)
