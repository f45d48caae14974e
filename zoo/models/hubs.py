"""Files from hubs: what lies there is fetched once and kept where the hub's own client keeps it."""

import pathlib
import sys
from collections.abc import Sequence
from typing import Any

from halo_search.cli.hub_handles import HUGGING_FACE, KAGGLE, check_handle
from halo_search.cli.public import public_models
from halo_search.errors import InputError, MissingPackageError, require
from halo_search.files.json_files import read_object
from zoo.layers.compat import fetched_file
from zoo.models.hugging_face import CONFIG_FILE

HUBS = (HUGGING_FACE, KAGGLE)
WEIGHTS = ("model.safetensors", "open_clip_model.safetensors")
HUB_FILE = "model.weights.h5"  # KerasHub's
# By the backbone's class in `keras_hub.models`: its preprocessor, and the layer of its logits.
FAMILIES = {
    "CLIPBackbone": ("CLIPPreprocessor", "clip_head"),
    "SigLIPBackbone": ("SigLIPPreprocessor", "siglip_head"),  # SigLIP 2 too
    "MetaCLIP2Backbone": ("MetaCLIP2CausalLMPreprocessor", "metaclip_2_head"),
}
# What may lie beside the weights of `transformers` or of a published checkpoint.
_BESIDE = (
    "preprocessor_config.json",
    *("spiece.model", "sentencepiece.model", "tokenizer.model"),
    *("vocab.json", "merges.txt", "bpe_simple_vocab_16e6.txt.gz", "vocab.txt"),
)


def hub_names() -> dict[str, str]:
    """The names of KerasHub's dual encoders: `{name: handle}`; empty without keras-hub."""
    return {name: str(facts.get("kaggle_handle", "")) for name, facts in hub_facts().items()}


def hub_facts() -> dict[str, dict[str, Any]]:
    """What KerasHub knows of its dual encoders, by their names; empty without keras-hub."""
    try:
        models = require("keras_hub", extra="models").models
    except MissingPackageError:
        return {}
    families = (getattr(models, family).presets for family in FAMILIES)
    return {name: facts for family in families for name, facts in family.items()}


def fetch(handle: str, names: Sequence[str], may_lack: bool = False) -> list[pathlib.Path]:
    """Fetches files of one folder on a hub; those that are cached are not fetched again. Raises
    InputError, in two seconds where there is no network, if one cannot be fetched."""
    check_handle(handle)
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
    tell_download(handle)
    if not any(fetch(handle, [name], may_lack=True) for name in WEIGHTS):
        raise InputError(f"{handle}: expected a file {' or '.join(WEIGHTS)}; it has neither")
    fetch(handle, _BESIDE, may_lack=True)
    return config.parent


def tell_download(name: str) -> None:
    """Says on stderr, before a model of a hub is fetched, how large it is, under which licence and
    where it is kept; nothing of one that is here already, or of no hub."""
    facts = hub_facts().get(name, {})
    handle = name if name.startswith(HUBS) else str(facts.get("kaggle_handle", ""))
    scheme, _, path = handle.partition("://")
    pending = None
    if scheme == "hf":
        pending = _on_hugging_face(path)
    elif scheme == "kaggle":
        folder = require("kagglehub.config", extra="models").get_cache_folder()
        where = pathlib.Path(folder) / "models" / path
        known = {row["name"]: row["licence"] for row in public_models()}
        size = 4 * facts.get("metadata", {}).get("params", 0)  # in single precision
        pending = None if where.exists() else (where, size, known.get(name))
    if pending is not None and name not in _TOLD:
        _TOLD.add(name)
        where, size, licence = pending
        size = f"{size / 1e9:.1f} GB" if size else "of a size that is not known"
        licence = licence or "not known: look at its page"
        print(
            f"{name}: fetching {size} from {handle} to {where}; licence: {licence}", file=sys.stderr
        )


_TOLD: set[str] = set()


def _on_hugging_face(path):
    """`(where it is kept, bytes, licence)` of a model; None of one that is here, or unreachable."""
    hub, repo = require("huggingface_hub", extra="models"), "/".join(path.split("/")[:2])
    if any(
        isinstance(hub.try_to_load_from_cache(repo, file_name), str)
        for file_name in (*WEIGHTS, HUB_FILE)
    ):
        return None
    try:
        facts = hub.model_info(repo, files_metadata=True, timeout=10)
    except Exception:  # what fetches it says why
        return None
    sizes = {file_name.rfilename: file_name.size or 0 for file_name in facts.siblings or ()}
    of_weights = sum(
        size for file_name, size in sizes.items() if file_name in WEIGHTS or file_name == HUB_FILE
    )
    licence = facts.card_data.get("license") if facts.card_data else None
    where = pathlib.Path(hub.constants.HF_HUB_CACHE) / f"models--{repo.replace('/', '--')}"
    return where, of_weights, licence


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
