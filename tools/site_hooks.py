"""MkDocs' hooks: pictures of a page's scheme, and a name of the search for screen readers.

Pages name `x.png` (or `.webp`) alone, which is what the checkout shows; where a picture has a dark
twin, `x_dark.png` lies beside it (`tools/first_screen.py`, `tools/demo_pictures.py`).
"""

import re
from pathlib import Path

DIALOG = 'data-md-component="search" role="dialog"'
IMAGE = re.compile(r'(<img [^>]*?src=")([^"#]+?)(\.(?:png|webp))("[^>]*>)')


def on_page_content(html, page, config, files):
    """Two pictures for one, of which Material's style sheet hides one."""

    def both(match):
        before, stem, suffix, after = match.groups()
        images = Path(config["docs_dir"]) / "images"
        if not (images / f"{Path(stem).name}_dark{suffix}").is_file():
            return match[0]
        light = f"{before}{stem}{suffix}#only-light{after}"
        return f"{light}{before}{stem}_dark{suffix}#only-dark{after}"

    return IMAGE.sub(both, html)


def on_post_page(output, page, config):
    """The page with the name of the theme's search, a dialog."""
    return output.replace(DIALOG, f'{DIALOG} aria-label="Search"')
