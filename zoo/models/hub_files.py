"""Files of models on Hugging Face and Kaggle, fetched once."""

import pathlib
from collections.abc import Sequence

from zoo.compat import fetched_file
from zoo.errors import InputError, MissingPackageError
from zoo.files.json_files import read_object
from zoo.models.hugging_face import CONFIG_FILE

HUBS = ("hf://", "kaggle://")
WEIGHTS = ("model.safetensors", "open_clip_model.safetensors")
# What may lie beside the weights of `transformers` or of a published checkpoint.
_BESIDE = (
    "preprocessor_config.json",
    *("spiece.model", "sentencepiece.model", "tokenizer.model"),
    *("vocab.json", "merges.txt", "bpe_simple_vocab_16e6.txt.gz", "vocab.txt"),
)


def fetch(handle: str, names: Sequence[str], may_lack: bool = False) -> list[pathlib.Path]:
    """Fetches files of one folder on a hub; those that are cached are not fetched again."""
    paths = []
    for name in names:
        try:
            paths.append(pathlib.Path(fetched_file(handle, name)))
        except Exception as error:  # each hub has its own
            if not (may_lack and isinstance(error, FileNotFoundError)) or _no_network(error):
                raise InputError(unfetched(handle, handle, error)) from error
    return paths


def fetch_config(handle: str) -> dict:
    """The `config.json` of a folder on a hub. Raises InputError as `fetch`."""
    return read_object(fetch(handle, [CONFIG_FILE])[0])


def fetch_weights(handle: str) -> pathlib.Path:
    """The local folder of a hub's model that others wrote: `config.json`, safetensors, tokenizer
    files. Raises InputError as `fetch`, or if the folder has no safetensors."""
    (config,) = fetch(handle, [CONFIG_FILE])
    if not any(fetch(handle, [name], may_lack=True) for name in WEIGHTS):
        raise InputError(f"{handle}: expected a file {' or '.join(WEIGHTS)}; it has neither")
    fetch(handle, _BESIDE, may_lack=True)
    return config.parent


def unfetched(name: str, handle: str, error: Exception) -> str:
    """The sentence of a model that could not be fetched, and what to do without a network."""
    if isinstance(error, MissingPackageError):
        return str(error)
    reason = str(error).strip().split("\n")[0] or type(error).__name__
    if _no_network(error):
        reason = "the hub cannot be reached"
    where = "" if name == handle else f" from {handle}"
    return (
        f"{name}: cannot be fetched{where}: {reason}. Without a network, fetch that folder on "
        "another machine and give its path"
    )


def _no_network(error):
    """Whether a connection is behind an error: the hubs' clients say a file is not there."""
    while error is not None:
        name = type(error).__name__
        if name == "gaierror" or "Connect" in name or "Timeout" in name:
            return True
        error = error.__cause__ or error.__context__
    return False
