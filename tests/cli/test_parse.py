import dataclasses
import errno
import importlib
import math
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from halo_search.cli import bounds
from halo_search.errors import InputError
from zoo import cli
from zoo.cli import OneLineParser, Share, Size, naming, parse, run, setting
from zoo.training.settings import RunSettings


@dataclass(frozen=True, kw_only=True)
class Settings(RunSettings):
    learning_rate: float = setting(1e-4, "peak rate", source="section 4.1")
    epochs: Size = setting(50, "share of 100%", toy=8, smoke=1)
    dropout: Share | None = setting(0.1)
    pool: Literal["mean", "max"] = setting("mean")
    augment: bool = setting(True)
    copies: Literal[1, 2] = setting(1)
    sizes: tuple[int, ...] = setting((7, 7))
    readers: tuple[Literal["sentence", "gru"], ...] = setting(("sentence",))
    note: str = "plain default"
    weights: str = setting("", "a file")

    def __post_init__(self):
        if self.epochs < 1:
            raise ValueError(f"`epochs` must be at least 1; received {self.epochs}")


def test_defaults_are_the_dataclass_with_real_data():
    settings = parse(Settings, ["--data-dir", "birds"])
    assert settings == Settings(data_dir=Path("birds"))
    assert settings.epochs == 50


def test_every_kind_of_flag():
    argv = "--learning-rate 0.5 --dropout none --pool max --no-augment --sizes 3 5 9 --seed 4"
    settings = parse(Settings, [*argv.split(), "--mixed-precision", "--out", "a/b"])
    assert settings.learning_rate == 0.5
    assert settings.dropout is None
    assert settings.pool == "max"
    assert settings.augment is False
    assert parse(Settings, ["--copies", "2"]).copies == 2
    assert settings.sizes == (3, 5, 9)
    assert parse(Settings, ["--readers", "sentence", "gru"]).readers == ("sentence", "gru")
    assert settings.seed == 4
    assert settings.mixed_precision == "mixed_bfloat16"
    assert settings.out == Path("a/b")
    assert parse(Settings, ["--mixed-precision", "mixed_float16"]).mixed_precision == (
        "mixed_float16"
    )


def test_toy_and_smoke_values_yield_to_a_given_flag():
    assert parse(Settings, []).epochs == 8
    assert parse(Settings, ["--smoke"]).epochs == 1
    assert parse(Settings, ["--smoke", "--data-dir", "x"]).epochs == 1
    assert parse(Settings, ["--smoke", "--epochs", "50"]).epochs == 50


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--epoch", "3"], "did you mean --epochs?"),
        (["--learn", "3"], "did you mean --learning-rate?"),  # the only one that begins so
        (["--least-epochs", "3"], "unknown argument '--least-epochs' (--help"),
        (["--epochs", "three"], "three"),
        (["--epochs", "0"], "at least 1; received 0"),
        (["--pool", "median"], "median"),
        (["stray"], "'stray'"),
    ],
)
def test_bad_flags_are_one_line_and_exit_code_2(argv, says, error_of):
    message = error_of(parse, Settings, argv)
    assert message.startswith("error: ")
    assert message.count("\n") == 1
    assert says in message


def test_help_shows_sources_defaults_and_variants(capsys):
    with pytest.raises(SystemExit) as ended:
        parse(Settings, ["--help"], description="Trains.")
    assert ended.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Trains." in text
    assert "peak rate (default 0.0001; source: section 4.1)" in text
    assert "--sizes INT [INT ...] (default 7 7)" in text
    assert "--weights STR a file" in text
    assert "(default )" not in text
    assert "share of 100% (default 50; 8 on the toy data; 1 with --smoke)" in text


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InputError("captions.txt line 3:\n  bad"), 2, "error: captions.txt line 3: bad\n"),
        (
            OSError(errno.ENOSPC, "No space left on device", "/x/model.keras"),
            2,
            "error: No space left on device: /x/model.keras\n",
        ),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (InputError("no model \x1b[2J\u202e"), 2, "error: no model \\x1b[2J\\u202e\n"),
    ],
)
def test_run_turns_what_a_person_can_mend_into_one_line(error, code, line, capsys, monkeypatch):
    monkeypatch.setattr("halo_search.cli.parser._end_at_exit", lambda _: None)  # of this process

    def main():
        raise error

    with pytest.raises(SystemExit) as ended:
        run(main)
    assert ended.value.code == code
    assert capsys.readouterr().err == line


def test_an_interrupted_process_cleans_up_and_does_not_wait_for_its_modules():
    code = """
import atexit, time
from halo_search.cli import parser
class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(60)
waited_for = Slow()
atexit.register(print, "cleaned up")
def main():
    print("some output")
    raise KeyboardInterrupt
parser.run(main)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
    assert done.stdout == "some output\ncleaned up\n"


@pytest.mark.parametrize("lines", [1, 100_000])
def test_a_reader_that_has_gone_is_no_error(lines):
    """`| head -1`: also where all that is printed fits a buffer, which is written at the end."""
    code = f"from halo_search.cli import parser; parser.run(lambda: print('x\\n' * {lines}))"
    read, write = os.pipe()
    os.close(read)
    environ = {**os.environ, "PYTHONUNBUFFERED": ""}
    how = {"stdout": write, "stderr": subprocess.PIPE, "env": environ}
    done = subprocess.run([sys.executable, "-c", code], **how)
    os.close(write)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")


def test_run_keeps_the_traceback_of_a_defect_and_the_code_of_main():
    def broken():
        raise ValueError("a defect")

    with pytest.raises(ValueError, match="a defect"):
        run(broken)
    with pytest.raises(SystemExit) as ended:
        run(lambda: None)
    assert ended.value.code == 0
    with pytest.raises(SystemExit) as ended:
        run(lambda code: code, 3)
    assert ended.value.code == 3


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["build", "--modle", "x"], "unknown argument '--modle', did you mean --model?"),
        (["build"], "required: --model"),
        (["build", "--model", "x", "--kind", "tree"], "argument --kind: invalid choice: 'tree'"),
    ],
)
def test_an_unknown_flag_is_reported_first(argv, says, error_of):
    whole = OneLineParser(prog="halo")
    build = whole.add_subparsers(dest="command", required=True).add_parser("build")
    build.add_argument("--model", required=True)
    build.add_argument("--kind", choices=("flat",))
    assert says in error_of(whole.parse_args, argv)
    found = whole.parse_args(["build", "--mod", "--  not a flag"])
    assert (found.model, found.kind) == ("--  not a flag", None)


@pytest.mark.parametrize(
    ("said", "value", "names"),
    [
        ("nope: not a model", "nope", "--model nope: not a model"),
        ("a model must be one of X; received 'nope'", "nope", "--model: a model must be one of"),
        ("photos: no such folder", "nope", "photos: no such folder"),
    ],
)
def test_an_error_about_a_value_names_its_flag(said, value, names):
    with pytest.raises(InputError) as error, naming("--model", value):
        raise InputError(said)
    assert str(error.value).startswith(names)


ROOT = Path(__file__).parents[2]


def settings_classes():
    names = [path.stem for path in sorted((ROOT / "recipes").glob("*.py"))]
    names += [f"studies.{path.stem}" for path in sorted((ROOT / "studies").glob("*.py"))]
    for name in names:
        for one in vars(importlib.import_module(name)).values():
            if (
                isinstance(one, type)
                and dataclasses.is_dataclass(one)
                and one.__name__ == "Settings"
            ):
                yield name, one


CLASSES = dict(settings_classes())


@pytest.mark.parametrize("name", CLASSES)
def test_the_values_of_a_recipe_are_what_it_takes(name):
    fields = [field for field in dataclasses.fields(CLASSES[name]) if field.init]
    for field, flag in zip(fields, cli.flags_of(CLASSES[name]), strict=True):
        values = (field.default, *(field.metadata.get(key) for key in ("toy", "smoke")))
        for value in values if flag.bounds else ():
            bounds.check(flag.name, value, flag.bounds)


@pytest.mark.parametrize(
    ("recipe", "flag", "says"),
    [
        ("pcme_cub", "--batch-size=0", "--batch-size must be a whole number of at least 1"),
        (
            "pcme_cub",
            "--dim=99999999999999999999",
            "--dim must be at most 2147483647; received 99999999999999999999",
        ),
        ("pcme_cub", "--learning-rate=-1", "--learning-rate must be a finite number of at least 0"),
        ("pcme_cub", "--word-dropping=1.5", "--word-dropping must be a share from 0 to 1"),
        ("pcme_cub", "--scale=0", "--scale must be a finite number above 0"),
        ("pcme_cub", "--seed=-1", "--seed must be a whole number of at least 0"),
        ("own_pairs", "--caption-drop-rate=1.5", "--caption-drop-rate must be a share from 0 to 1"),
        ("dive_coco", "--num-heads=0", "--num-heads must be a whole number of at least 1"),
        ("studies.pcme_figures", "--figure=E.1 --samples 5 0", "--samples must be a whole number"),
    ],
)
def test_a_number_that_is_none_of_its_kind_is_one_sentence(recipe, flag, says, error_of):
    error = error_of(cli.parse, CLASSES[recipe], flag.split())
    assert says in error
    assert error.startswith("error: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("kind", "inside", "outside"),
    [
        ("size", (1, 7), (0, -1, 2**31)),
        ("count", (0, 7), (-1, 2**31)),
        ("share", (0.0, 1.0), (-0.1, 1.1, math.nan)),
        ("rate", (0.0, 1e30), (-1e-9, math.inf, math.nan)),
        ("positive", (1e-9,), (0.0, -1.0, math.inf)),
        ("signed", (-5.0, 0.0), (math.inf, -math.inf, math.nan)),
    ],
)
def test_bounds(kind, inside, outside):
    for value in inside:
        bounds.check("--x", value, kind)
    for value in outside:
        with pytest.raises(ValueError, match=r"--x must be .*; received"):
            bounds.check("--x", value, kind)


@pytest.mark.parametrize("text", ["--no-cache-features", "--cache-features"])
def test_a_yes_or_no_is_a_pair_of_flags(text):
    settings = cli.parse(CLASSES["pcmepp_coco"], text.split())
    assert settings.cache_features is (text != "--no-cache-features")
