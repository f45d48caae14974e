"""Shows a model and a gallery in the browser.

    python -m demo                                   # the packaged model of photos, and 170 photos
    python -m demo --photos PHOTOS                   # the same model over your own
    python -m demo siglip2_base_patch16_224          # or a folder of CLIP, SigLIP, ProLIP, …
    python -m demo toy_birds_pfe                     # drawn birds, of which everything is known
    python -m demo runs/pcme_cub --data-dir CUB_200_2011
    python -m demo runs/pcme_cub --photos PHOTOS --captions captions.txt
    python -m demo runs/my_photos                    # an index that `halo search build` wrote
    python -m demo toy_birds_pfe --compare toy_birds_pcme     # two models side by side

It listens on this machine alone unless --host says otherwise.
"""

import argparse
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
from pathlib import Path

from halo_search.cli.checks import ALLOWED_HOST, ROOT_PATH, TOKEN, check_model, check_path, is_index
from halo_search.cli.numbers import whole_number
from halo_search.cli.parser import OneLineParser, naming, program, run
from halo_search.errors import InputError, require
from halo_search.server.address import listening

_TOLD = 128 + signal.SIGTERM  # the exit code of who was told to end


def main(argv=None):
    options = _parser().parse_args(argv)
    check_model(options.run)
    check_path(options.photos, f"{options.photos}: no such folder of images, or CSV or TSV file")
    check_path(options.captions, f"--captions {options.captions}: no such file")
    check_path(options.data_dir, f"--data-dir {options.data_dir}: no such folder")
    for model in options.compare:
        with naming("--compare", model):
            check_model(model)
    _check_index_flags(options)
    options.port = _free(options.host, options.port)
    with _ending_at_once(), _private_folder():
        require("gradio", extra="demo")  # reads where the private folder is when it is imported
        from demo import limits, page

        with contextlib.closing(limits.DECODERS):  # else a picture under way delays the end
            gallery = _shown(options)
            built = page.build(gallery, *_compared(options, gallery))
            names = options.allowed_host, options.root_path, options.token
            built.launch(options.host, options.port, *names)


def _free(host, port):
    """The port to serve at: a free one for 0, and None for Gradio's choice. Raises InputError if
    the address is none, or taken, before a gallery is encoded for it."""
    with listening(host, port or 0) as probe:
        return None if port is None else probe.getsockname()[1]


def _check_index_flags(options):
    """Raises InputError for a flag that does nothing of an index, or for a part of one."""
    if is_index(options.run):
        of_models = ("captions", "data_dir", *([] if options.compare else ["cache"]))
        for flag in of_models:
            if getattr(options, flag) is not None:
                raise InputError(
                    f"--{flag.replace('_', '-')} does not apply to an index; received the index "
                    f"{options.run}"
                )
    whole = Path(options.run).resolve().parent
    if is_index(whole):
        raise InputError(f"{options.run}: is one part of an index; pass its folder, {whole}")


def _shown(options):
    """The gallery."""
    if is_index(options.run):
        from demo import stored_index

        return stored_index.load(options.run, options.photos)
    from demo import sources

    return sources.load(
        options.run, options.photos, options.captions, options.data_dir, options.cache
    )


def _compared(options, gallery):
    """The gallery's pictures by the models of --compare."""
    if not options.compare:
        return []
    from demo import sources

    return [sources.by_another(model, gallery, options.cache) for model in options.compare]


@contextlib.contextmanager
def _ending_at_once():
    """Ends the process after the block at SIGTERM, for which Gradio's threads would wait."""
    try:
        yield
    except SystemExit as error:
        if error.code == _TOLD:
            os._exit(_TOLD)
        raise


@contextlib.contextmanager
def _private_folder():
    """Gradio's folder of temporary files, for the block alone; it goes at SIGTERM too."""
    # Gradio serves all of it, and by default all its pages on the machine share one.
    before = os.environ.get("GRADIO_TEMP_DIR")
    # A collector's callback, in which a signal may come, swallows what its handler raises.
    ending = threading.Timer(1, lambda: shutil.rmtree(private, True) or os._exit(_TOLD))
    ending.daemon = True

    def told(*_):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        ending.start()
        sys.exit(_TOLD)  # as Ctrl+C does

    handler = signal.signal(signal.SIGTERM, told)
    private = tempfile.mkdtemp(prefix="halo-demo-")
    try:
        os.environ["GRADIO_TEMP_DIR"] = private
        yield
    finally:
        for number in range(99):  # an upload that still comes may make it again
            if os.path.isdir(private):
                ended = f"{private}-{number}"
                with contextlib.suppress(OSError):
                    os.rename(private, ended)  # where nobody writes: else removing may never end
                shutil.rmtree(ended, True)
        ending.cancel()
        signal.signal(signal.SIGTERM, handler or signal.SIG_DFL)
        os.environ.pop("GRADIO_TEMP_DIR", None)
        if before is not None:
            os.environ["GRADIO_TEMP_DIR"] = before


def _parser():
    parser = OneLineParser(
        prog=program("python -m demo"),
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "run",
        nargs="?",
        default="photos_pfe",
        help="an index, or name, folder or handle of a model: preset, run, KerasHub, Hugging Face "
        "(photos_pfe)",
    )
    parser.add_argument(
        "--photos", type=Path, metavar="DIR", help="folder of your photos, or of an index's"
    )
    parser.add_argument(
        "--captions", type=Path, metavar="FILE", help="captions of your photos: text, CSV or TSV"
    )
    parser.add_argument(
        "--compare",
        nargs="+",
        default=[],
        metavar="MODEL",
        help="further models that answer the same questions, side by side",
    )
    parser.add_argument("--data-dir", type=Path, help="data set of the run, if it has moved")
    parser.add_argument(
        "--cache", type=Path, help="folder for embeddings (default: the user's cache folder)"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument(
        "--port",
        type=whole_number(0, 65_535),
        help="port; 0 takes a free one (default: the first free one from 7860)",
    )
    parser.add_argument("--allowed-host", **ALLOWED_HOST)
    parser.add_argument("--token", **TOKEN)
    parser.add_argument("--root-path", **ROOT_PATH)
    return parser


if __name__ == "__main__":
    run(main)
