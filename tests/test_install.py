"""The wheel: what is in it, and its commands in an environment that knows no checkout."""

import email
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from halo_search import presets

pytest.importorskip("hatchling", reason="the wheel is built by hatchling, of the extra 'dev'")

ROOT = Path(__file__).parent.parent
PRESETS = ("photos_pfe", "toy_birds_pfe")  # in the wheel with their weights
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    offline = ("--no-deps", "--no-build-isolation", "--no-index")
    subprocess.run([*PIP, "wheel", *offline, "--wheel-dir", folder, ROOT], check=True)
    (path,) = folder.glob("halo_zoo-*.whl")
    return path


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """The folder of a virtual environment with the wheel in it."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    install = ("--python", python, "install", "--no-deps", "--no-index", "--no-compile")
    subprocess.run([*PIP, *install, wheel], check=True)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    # The .pth files of a folder that is added this way are not read, an editable install's neither.
    (site_packages / "lent.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return folder


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """The folder, away from the checkout, in which every command runs."""
    return tmp_path_factory.mktemp("outside")


@pytest.fixture(scope="module")
def halo(environment, outside):
    """A function that runs `halo` with some arguments to its end and returns what it printed."""

    def call(*argv):
        command = [environment / "bin" / "halo", *argv]
        done = subprocess.run(
            command, cwd=outside, env=_variables(outside), capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    return call


def _variables(outside):
    hidden = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return {**kept, "HALO_CACHE": str(outside / "cache")}


@pytest.mark.slow
def test_the_wheel_holds_all_that_its_commands_need(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert wheel.stat().st_size <= 52_000_000
    others = {name for name in presets.names() if presets.towers_of(name) is None}
    inside = {PurePosixPath(name).parts[2:] for name in names if name.startswith("zoo/presets/")}
    assert {parts for parts in inside if len(parts) > 1} == {
        (name, "preset.json") for name in others
    }
    tops = {PurePosixPath(name).parts[0].partition("-")[0] for name in names}
    assert tops == {"halo_search", "zoo", "halo_zoo"}  # the last is the folder of its metadata
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]
    held = set(names)
    for room, place in (
        ("halo_search", "halo_search"),
        ("zoo", "zoo"),
        *((name, f"halo_search/applications/{name}") for name in ("recipes", "export", "demo")),
    ):
        for path in (ROOT / room).rglob("*"):
            left_out = {"__pycache__", ".ruff_cache", *others} & {*path.parts}
            if path.is_file() and not left_out:
                assert f"{place}/{path.relative_to(ROOT / room).as_posix()}" in held


@pytest.mark.slow
def test_the_wheel_says_its_licences(wheel):
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    said = email.message_from_bytes(archive.read(name))
    credits = (ROOT / "halo_search" / "photos" / "CREDITS").read_text().splitlines()
    licences = {line.split("\t")[2] for line in credits if line[0].isdigit()}
    spdx = {
        f"LicenseRef-{one.title()}".replace(" ", "-") if "known" in one else one.replace(" ", "-")
        for one in licences
    }
    assert set(said["License-Expression"].split(" AND ")) == {"Apache-2.0", "CC-BY-4.0", *spdx}
    assert {"LICENSE", "halo_search/photos/CREDITS"} <= set(said.get_all("License-File"))


@pytest.mark.very_slow
def test_an_installed_package_is_that_of_the_wheel(environment, outside):
    """It names the presets of the repository, and nothing as common as `demo` is to be imported."""
    code = """if True:
        import importlib.util
        import zoo
        print(zoo.__file__, importlib.util.find_spec("demo"))
        print(sorted(name for name, card in zoo.list_presets().items() if card["installed"]))
        try:
            zoo.from_preset("birds_dive")
        except halo_search.errors.InputError as error:
            print(error)
    """
    command = [environment / "bin" / "python", "-c", code]
    found = subprocess.run(
        command, cwd=outside, env=_variables(outside), capture_output=True, text=True, check=True
    )
    places, listed, refused = found.stdout.splitlines()
    path, spec = places.split()
    assert Path(path).is_relative_to(environment)  # not in the checkout
    assert spec == "None"
    assert listed == str(list(PRESETS))
    assert refused.startswith("birds_dive: this preset is in the repository only")


@pytest.mark.very_slow
def test_the_command_is_that_of_the_wheel(halo):
    assert halo("--help").startswith("usage: halo COMMAND")
    assert "  pcme_cub " in halo("train")
    assert halo("demo", "--help").startswith("usage: halo demo [-h]")


@pytest.mark.very_slow
def test_a_run_outside_of_the_checkout(environment, outside, halo):
    trained = halo(
        "train", "pcme_cub", "--smoke", "--out", "run", "--test-similarities", "euclidean"
    )
    assert "Everything is in run" in trained
    assert not set(trained) & set("\b\r\x1b")
    assert '"command": "halo train pcme_cub --smoke' in (outside / "run/config.json").read_text()
    halo("report", "run")
    assert (outside / "run/report/report.md").is_file()
    assert (outside / "run/report/text_to_image.png").stat().st_size > 10_000
    halo("export", "run", "served")
    assert (outside / "served/1/saved_model.pb").is_file()
