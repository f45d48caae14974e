"""What a run is computed on: versions of software, and hardware."""

import importlib.metadata
import os
import platform
from typing import Any


def versions() -> dict[str, str | None]:
    """Of Python, the platform and the packages that results depend on."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for name in ("halo-zoo", "keras", "tensorflow", "numpy"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def hardware() -> dict[str, Any]:
    """What a time belongs to: the processor's cores that the process may use, and accelerators."""
    import tensorflow as tf  # here, so that reading a run does not wait for it

    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    details = tf.config.experimental.get_device_details
    accelerators = tf.config.list_physical_devices("GPU")
    return {
        "cpus": cpus,
        "gpus": [details(device).get("device_name", device.name) for device in accelerators],
    }
