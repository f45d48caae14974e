"""The report's computations at COCO's size: 5,000 images, 25,000 captions.

`python -m benchmarks report_size`. Random Gaussians and captions, ranked by CSD; everything that a
report computes and draws from embeddings, with 500 resamples for every interval. What a model has
to encode anew (erased pictures, lost words) is left out, since that is the model's time.
"""

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.report import Report
from benchmarks.timing import measure, peak_memory
from zoo.data import Records
from zoo.embeddings import uncertainty
from zoo.evaluation.retrieval import EncodedSplit
from zoo.report import ReportedRun, write_report
from zoo.similarities import ClosedFormSampledDistance

SEED = 0
IMAGES, CAPTIONS, DIM = 5000, 25000, 1024
WORDS = 2000


def main():
    report = Report(f"Report of {IMAGES:,} images, {CAPTIONS:,} captions, D = {DIM}", SEED)
    measured = measure(whole_report(), repeats=1, warmup=0)
    memory = peak_memory("benchmarks.report_size:whole_report")
    report.add(
        what="retrieval, bins, risk–coverage, calibration, ellipses, isotropy, words, intervals",
        seconds=measured.seconds,
        cpu_seconds=measured.cpu_seconds,
        peak_gib=memory / 2**30,
    )
    report.notes.append("peak: beyond the embeddings; includes the 0.47 GiB matrix that it keeps")
    return report


def whole_report():
    """A function that writes the report of a random run."""
    rng = np.random.default_rng(SEED)
    own = np.arange(CAPTIONS) // (CAPTIONS // IMAGES)
    words = np.array([f"word{number}" for number in range(WORDS)])
    # Frequencies fall as those of a language do.
    share = 1.0 / np.arange(1, WORDS + 1)
    lines = rng.choice(words, (CAPTIONS, 10), p=share / share.sum())
    records = Records(
        name="random",
        image_paths=[f"{number}.jpg" for number in range(IMAGES)],
        captions=[" ".join(line) for line in lines],
        caption_image=own,
        image_labels=np.arange(IMAGES),
        image_ids=np.arange(IMAGES),
    )
    images, captions = gaussian(rng, IMAGES), gaussian(rng, CAPTIONS)
    captions["mean"] += np.float32(0.3) * images["mean"][own]
    values = [np.asarray(uncertainty(side, "total_variance")) for side in (images, captions)]
    split = EncodedSplit(records, images, captions, *values, "tr Σ", "total_variance")
    run = ReportedRun(
        "random", split, ClosedFormSampledDistance(), true_matches=rng.integers(1, 99, CAPTIONS)
    )

    def write():
        with tempfile.TemporaryDirectory() as folder:
            return write_report([run], Path(folder)).stat().st_size

    return write


def gaussian(rng, count):
    """Means of length about one, and log variances that differ between items."""
    mean = rng.standard_normal((count, DIM), "float32") * np.float32(DIM**-0.5)
    size = rng.normal(-np.log(DIM) - 2, 0.3, (count, 1)).astype("float32")
    log_variance = size + np.float32(0.1) * rng.standard_normal((count, DIM), "float32")
    return {"mean": mean, "log_variance": log_variance}
