"""The folder of one run. The same command given again finds there what to resume."""

import contextlib
import dataclasses
import os
import platform
import sys
from pathlib import Path
from typing import Any

from halo_search.errors import InputError
from halo_search.files.atomic import LOCK_FILE, atomic, locked, remove_leftovers
from halo_search.files.json_files import as_json, json_kind, read_json, read_object, write_json
from halo_search.files.written import Written

MODEL_SUFFIX = ".keras"
# What a run may write: `written.json` lists it before anything is there.
_NAMES = (
    *("config.json", "metrics.json", "history.csv", f"model{MODEL_SUFFIX}", "probes.npz"),
    *("plots", "checkpoints", "report", "tensorboard", "skipped.jsonl", "traceback.txt"),
)
_OF_A_RUN = {"settings", "data", "command", "versions"}  # keys of its config.json


class RunFolder:
    """The folder of a run: `config.json` (settings, data, command, versions and hardware), its
    progress (`history.csv`, `checkpoints/`), its results (`model.keras`, `plots/`, `probes.npz`)
    and, as the last of all, `metrics.json`. A file is whole or it is not there.

    ```python
    run = RunFolder.existing("runs/pcme_cub")
    run.metrics["retrieval"]
    ```

    Args:
        path: the folder. `RunFolder(path)` touches nothing; `open` starts or resumes a run and
            `existing` reads one.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        self.config_path = self.path / "config.json"
        self.metrics_path = self.path / "metrics.json"
        self.history_path = self.path / "history.csv"
        self.model_path = self.path / f"model{MODEL_SUFFIX}"
        self.probes_path = self.path / "probes.npz"  # `halo_search.confidence.Probes`
        self.plots = self.path / "plots"
        self.checkpoints = self.path / "checkpoints"
        self.written = Written(self.path)

    @classmethod
    def open(
        cls, path: str | os.PathLike, settings: Any, data: dict[str, Any] | None = None
    ) -> "RunFolder":
        """Starts a run in an empty or new folder, or resumes the same run.

        Until something is trained, settings that differ replace those that are there.

        Args:
            path: the folder.
            settings: the recipe's settings, a dict of JSON values or a dataclass; in fields of
                `setting(..., identity=False)` one run may differ between its starts.
            data: what the run reads, a description for `zoo.data.open`.

        Raises:
            InputError: if the folder holds other settings or files, or cannot be written.
        """
        run = cls(path)
        fields = dataclasses.fields(settings) if dataclasses.is_dataclass(settings) else ()
        ignore = {field.name for field in fields if not field.metadata.get("identity", True)}
        settings = as_json(settings)  # a tuple and what is read back from the file compare equal
        if run.path.exists() and not run.path.is_dir():
            raise InputError(f"{run.path} is a file; --out must name a folder")
        if run.config_path.exists():
            differences = run._differences(settings, ignore)
            if differences and run._is_trained:
                raise InputError(
                    f"{run.path} holds a run with other settings: {'; '.join(differences)}. "
                    "Choose another --out"
                )
            run.tidy()
            if differences:
                with locked(run.path):  # who holds it may be before the first checkpoint
                    run._start(settings, data)
        else:
            run.written.check()  # all that is there is of a start that was killed
            run.tidy()
            run.written.claim(*_NAMES)
            run._start(settings, data)
        try:
            for folder in (run.plots, run.checkpoints):
                folder.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot write {folder}: {error.strerror}") from error
        return run

    @classmethod
    def existing(cls, path: str | os.PathLike) -> "RunFolder":
        """The run in a folder, for reading; an InputError if it holds none."""
        run = cls(path)
        if not run.path.is_dir():
            raise InputError(f"no such run folder: {run.path}")
        if not run.config_path.exists():
            raise InputError(f"{run.path} is not a run folder: it has no config.json")
        return run

    def discard(self) -> None:
        """Removes what `open` has just made, and the folder unless it holds more."""
        self.written.remove(_NAMES)
        for path in (self.written.path, self.path / LOCK_FILE):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.path.rmdir()

    @property
    def is_run(self) -> bool:
        """Whether a run is there: a `config.json` that is damaged or has something of a run's.
        Those of presets, of hubs and of published checkpoints describe a network."""
        if not self.config_path.is_file() or (self.path / "metadata.json").is_file():
            return False
        try:
            config = read_json(self.config_path)
        except InputError:
            return True
        return not (isinstance(config, dict) and config) or bool(_OF_A_RUN & config.keys())

    @property
    def config(self) -> dict[str, Any]:
        """The content of `config.json`, whose `settings` are an object."""
        return self._config_with("settings")

    @property
    def settings(self) -> dict[str, Any]:
        """The settings the run was started with, as JSON values."""
        return self.config["settings"]

    @property
    def data(self) -> dict[str, Any]:
        """What the run reads, for `zoo.data.open`; an InputError if `config.json` has none."""
        return self._config_with("data")["data"]

    def _config_with(self, key):
        """The content of `config.json`. Raises InputError unless it has an object as `key`."""
        config = read_object(self.config_path)
        if not isinstance(config.get(key), dict):
            stored = json_kind(config[key]) if key in config else "nothing"
            raise InputError(f"{self.config_path}: expected an object as {key!r}, found {stored}")
        return config

    @property
    def metrics(self) -> dict[str, Any] | None:
        """The results, or None while the run is not finished."""
        return read_object(self.metrics_path) if self.finished else None

    @property
    def finished(self) -> bool:
        """Whether the results are there, the last thing that a run writes."""
        return self.metrics_path.exists()

    def finish(self, metrics: dict[str, Any]) -> None:
        """Writes the results, which marks the run as finished."""
        write_json(self.metrics_path, metrics)

    def save_model(self, model: Any, name: str = "model") -> Path:
        """Saves a model as `name.keras` and returns its path."""
        path = self.path / f"{name}{MODEL_SUFFIX}"
        with atomic(path) as temporary:
            model.save(temporary)
        return path

    def __fspath__(self):
        return str(self.path)

    def __repr__(self):
        return f"RunFolder({str(self.path)!r})"

    def tidy(self) -> None:
        """Deletes the temporary files of killed writers, here and in the folders of the run."""
        for folder in (self.path, self.plots, self.checkpoints):
            remove_leftovers(folder, deep=False)

    def _start(self, settings, data):
        """Writes `config.json`: settings, data, command, versions and hardware."""
        config = {
            "settings": settings,
            "data": data,
            "command": " ".join(sys.argv),
            "versions": _versions(),
            "hardware": _hardware(),
        }
        write_json(self.config_path, config)

    @property
    def _is_trained(self):
        """Whether there is anything that other settings would have made otherwise."""
        files = (self.metrics_path, self.history_path, self.model_path)
        has_checkpoints = self.checkpoints.is_dir() and any(self.checkpoints.iterdir())
        return has_checkpoints or any(path.exists() for path in files)

    def _differences(self, settings, ignore):
        """In which settings the run that is here differs, as sentences."""
        before, absent = self.settings, "not set"
        return [
            f"{name} was {before.get(name, absent)!r} and is now {settings.get(name, absent)!r}"
            for name in sorted((before.keys() | settings.keys()) - ignore)
            if before.get(name, absent) != settings.get(name, absent)
        ]


def _versions():
    """Of Python, the platform and the packages that results depend on."""
    import importlib.metadata  # here: a question needs none of its parsers

    versions = {"python": platform.python_version(), "platform": platform.platform()}
    for name in ("halo-zoo", "keras", "tensorflow", "numpy"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return versions


def _hardware():
    """What a time belongs to: the processor's cores that the process may use, and accelerators."""
    import tensorflow as tf  # here, so that reading a run does not wait for it

    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    details = tf.config.experimental.get_device_details
    accelerators = tf.config.list_physical_devices("GPU")
    return {
        "cpus": cpus,
        "gpus": [details(device).get("device_name", device.name) for device in accelerators],
    }
