"""Draws the demo's screens: desktop and phone, light and dark, as docs/images/demo_*.webp.

    python -m tools.demo_pictures

Six views of the packaged photos in Chromium, four screens each; README shows one of them.
"""

import argparse
import io
from pathlib import Path
from urllib.parse import quote

from PIL import Image

from benchmarks.demo import started
from halo_search.photos import packaged_photos

OUT = Path(__file__).parents[1] / "docs" / "images"
PHONE = {"is_mobile": True, "has_touch": True}
SCREENS = {
    "": {"viewport": {"width": 1400, "height": 900}},
    "_phone": {"viewport": {"width": 390, "height": 844}, **PHONE},
}
QUESTION, ABSENT = "two people riding horses on the beach", "a penguin"
COMPARED = "a man sitting at a table with a plate of food"
VIEWS = {
    "answer": f"?q={quote(QUESTION)}",
    "nothing": f"?q={quote(ABSENT)}",
    "photo": f"?q={quote(QUESTION)}",
    "map": f"?page=map&q={quote('a bathroom')}",
    "own": "?page=own",
    "compare": f"?page=compare&q={quote(COMPARED)}",
}
STILL = """() => document.getAnimations().every((one) => one.playState !== "running")
  && [...document.images].every((one) => one.complete || one.loading === "lazy")"""
QUALITY, WIDEST = 80, 1100  # of WebP, and pixels
MOST = 120_000  # ms that a screen may take


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m tools.demo_pictures", description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the pictures")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    from playwright.sync_api import sync_playwright

    with started() as (address, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        for suffix, shape in SCREENS.items():
            for scheme, dark in {"light": "", "dark": "_dark"}.items():
                context = browser.new_context(**shape, color_scheme=scheme, bypass_csp=True)
                page = context.new_page()
                page.set_default_timeout(MOST)
                for view, query in VIEWS.items():
                    page.goto("about:blank")
                    page.goto(f"{address}/{query}")
                    _open(page, view)
                    _save(page, options.out / f"demo_{view}{suffix}{dark}.webp")
                context.close()
        browser.close()


def _open(page, view):
    """Brings a view into the state that is drawn."""
    page.wait_for_selector("#main:not([aria-busy]) > *", state="attached")
    if view == "photo":
        page.locator(".tile button").first.click()
        page.wait_for_selector("#viewer .neighbours .tile")
    elif view == "map":
        page.wait_for_function("haloMap.question && haloMap.tiles.length")
    elif view == "own":
        page.locator("#own-files").set_input_files(packaged_photos()[40:58])
        page.wait_for_selector(".own .note:has-text('photos')")
    page.wait_for_load_state("networkidle")
    page.wait_for_function(STILL)


def _save(page, path):
    picture = Image.open(io.BytesIO(page.screenshot()))
    picture.thumbnail((WIDEST, WIDEST))
    picture.save(path, quality=QUALITY, method=6)
    print(path)


if __name__ == "__main__":
    main()
