"""The files of the Hugging Face Space: its settings, what it installs, and that it runs."""

import re
import runpy
import sys
from pathlib import Path

import pytest
import yaml

import demo.__main__
from demo import page, sources

ROOT = Path(__file__).parents[2]
SPACE = ROOT / "demo" / "space"


def test_its_settings_fit_the_package():
    header = yaml.safe_load((SPACE / "README.md").read_text(encoding="utf-8").split("---\n")[1])
    assert header["sdk"] == "gradio"
    pinned = re.search(r"^gradio==(\S+)", (ROOT / "requirements.lock").read_text(), re.M)
    assert header["sdk_version"] == pinned[1]
    assert (SPACE / header["app_file"]).is_file()
    assert len(header["short_description"]) <= 60  # what the hub takes
    assert (SPACE / "requirements.txt").read_text().strip() == "halo-zoo[demo]"


def test_it_runs(gaussians, monkeypatch, tmp_path):
    launched = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sources, "load", lambda *_: gaussians)
    # Another test's page may be served at that port.
    monkeypatch.setattr(demo.__main__, "_free", lambda host, port: port)
    monkeypatch.setattr(page.Page, "launch", lambda *where: launched.append(where))
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SPACE / "app.py"), run_name="__main__")
    assert ended.value.code in (0, None)
    ((built, *where),) = launched
    assert where[:2] == ["0.0.0.0", 7860]
    assert built.service.gallery is gaussians
