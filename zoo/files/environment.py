"""The machine of a run: its cache folder, versions of software, hardware."""

import os
import platform
from pathlib import Path
from typing import Any

VARIABLE = "HALO_CACHE"


def versions() -> dict[str, str | None]:
    """Of Python, the platform and the packages that results depend on."""
    import importlib.metadata  # here: a question needs none of its parsers

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


def cache_folder(*parts: str) -> Path:
    """A place below the user's cache folder: that of the environment variable `HALO_CACHE`, else
    `$XDG_CACHE_HOME/halo-zoo`, else `~/.cache/halo-zoo`. Nothing is created."""
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given).expanduser().joinpath(*parts)
    base = os.environ.get("XDG_CACHE_HOME")
    base = Path(base) if base else Path("~/.cache").expanduser()
    return base.joinpath("halo-zoo", *parts)
