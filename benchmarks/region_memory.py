"""Memory while a training pipeline goes through a file of region features larger than memory."""

import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.report import Report
from zoo.data import batches, captions, regions

_IMAGES, _REGIONS, _DIM, _BATCH = 100_000, 36, 2048, 128


def main():
    with tempfile.TemporaryDirectory() as folder:
        return _measure(Path(folder))


def write_sparse(folder, images, split="train"):
    """SCAN's files with features that are all zero and take no room on the disk."""
    shape = (images, _REGIONS, _DIM)
    array = np.lib.format.open_memmap(folder / f"{split}_ims.npy", "w+", np.float32, shape)
    del array
    lines = (f"caption {index}\n" for index in range(regions.CAPTIONS_PER_IMAGE * images))
    (folder / f"{split}_caps.txt").write_text("".join(lines))


def resident():
    """Bytes of this process that are in memory, those of mapped files among them."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status has no line VmRSS")


def _measure(folder):
    write_sparse(folder, _IMAGES)
    report = Report(f"{_IMAGES:,} images of {_REGIONS} x {_DIM} regions, float32", seed=0)
    before = resident()
    records = regions.load(folder, verbose=False).records
    source = regions.features(records)
    loaded = resident()
    tokenizer = captions.WordTokenizer(["caption"], max_words=4)
    steps = _IMAGES // _BATCH
    dataset = batches.images_with_captions(records, tokenizer, source, _BATCH, num_steps=steps)
    start, most = time.perf_counter(), 0
    for number, _ in enumerate(dataset):
        most = max(most, resident()) if number % 4 == 0 else most
    report.add(
        what="an epoch of training batches",
        peak_resident_mib=most / 2**20,
        images_per_second=steps * _BATCH / (time.perf_counter() - start),
    )
    size = (folder / "train_ims.npy").stat().st_size
    report.notes.append(
        f"the file has {size / 2**30:.1f} GiB; resident before {before / 2**20:.0f} MiB, with "
        f"500,000 captions loaded {loaded / 2**20:.0f} MiB"
    )
    return report
