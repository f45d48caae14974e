"""Time, CPU-seconds and peak memory of a function; ratios come from one run.

Wall-clock figures of two processes differ by whatever else the machine does, so everything that is
divided by something else is measured by one `compare`, which takes turns between the candidates.
"""

import dataclasses
import gc
import importlib
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

LIBRARIES = ("keras", "tensorflow", "numpy", "scipy", "jax", "faiss-cpu")


@dataclasses.dataclass(frozen=True)
class Measurement:
    """Medians over the repeats.

    Attributes:
        seconds: wall-clock time of one call.
        cpu_seconds: time of all threads of the process during one call.
        repeats: how many calls the medians are taken over.
    """

    seconds: float
    cpu_seconds: float
    repeats: int

    def scaled(self, factor):
        """The same measurement for `factor` times the work, for a part that stands for a whole."""
        return Measurement(self.seconds * factor, self.cpu_seconds * factor, self.repeats)


def compare(functions, repeats=5, warmup=1):
    """Measures several functions in one run, taking turns so that a slow spell hits them all.

    Args:
        functions: dict from a name to a function without arguments. What it returns is waited for:
            a tensor (or the first of a nested tuple or list) is copied to NumPy.
        repeats: measured calls of each; the medians are kept.
        warmup: calls of each before them (tracing, compiling, first allocation).

    Returns:
        dict from the same names to `Measurement`.
    """
    for function in functions.values():
        for _ in range(warmup):
            _wait(function())
    times = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            gc.collect()
            start, cpu_start = time.perf_counter(), time.process_time()
            _wait(function())
            times[name].append((time.perf_counter() - start, time.process_time() - cpu_start))
    return {
        name: Measurement(
            *(statistics.median(column) for column in zip(*rows, strict=True)), repeats
        )
        for name, rows in times.items()
    }


def measure(function, repeats=5, warmup=1):
    """`compare` of one function."""
    return compare({"only": function}, repeats, warmup)["only"]


def peak_memory(target, timeout=600, **arguments):
    """How many bytes a call adds to its process at the worst moment, in a fresh process.

    Args:
        target: `"module:function"`. The function receives the keyword arguments (JSON values),
            prepares whatever is not to be counted and returns the function to be counted.
        timeout: seconds before the process is ended.

    Returns:
        Bytes between the resident size before the counted call and the peak during it.

    Raises:
        RuntimeError: if the process fails; the message ends with its last lines.
    """
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks.timing", target, json.dumps(arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=Path(__file__).resolve().parents[1],
    )
    if result.returncode:
        raise RuntimeError(f"{target} ended with {result.returncode}:\n{result.stderr[-2000:]}")
    return json.loads(result.stdout.splitlines()[-1])["peak_bytes"]


def hardware():
    """The machine and the libraries that a figure belongs to, as a dict of strings and numbers."""
    versions = {}
    for library in LIBRARIES:
        try:
            versions[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return {
        "processor": _processor(),
        "cpus": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "python": platform.python_version(),
        **versions,
    }


def _processor():
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _wait(value):
    while isinstance(value, (tuple, list)):
        value = value[0]
    if hasattr(value, "block_until_ready"):
        value.block_until_ready()
    elif hasattr(value, "numpy"):
        value.numpy()


def _resident_bytes():
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    return peak_bytes()


def _reset_peak():
    # Linux only: importing TensorFlow peaks above what stays resident, which is not ours to count.
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text("5")


def children_cpu_seconds():
    """CPU seconds of all processes of this one that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def peak_bytes():
    """Most memory of this process so far; Linux' ru_maxrss holds also what its parent had."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _child(target, arguments):
    module, name = target.split(":")
    counted = getattr(importlib.import_module(module), name)(**json.loads(arguments))
    gc.collect()
    _reset_peak()
    before = _resident_bytes()
    _wait(counted())
    print(json.dumps({"peak_bytes": peak_bytes() - before}))


if __name__ == "__main__":
    _child(*sys.argv[1:])
