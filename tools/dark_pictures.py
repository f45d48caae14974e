"""MkDocs' hook: where a picture has a dark twin, a page shows the one of its scheme.

Pages name `x.png` alone, which is what the checkout shows; `x_dark.png` lies beside it
(`tools/first_screen.py`).
"""

import re
from pathlib import Path

IMAGE = re.compile(r'(<img [^>]*?src=")([^"#]+?)(\.png)("[^>]*>)')


def on_page_content(html, page, config, files):
    """Two pictures for one, of which Material's style sheet hides one."""

    def both(found):
        before, stem, suffix, after = found.groups()
        images = Path(config["docs_dir"]) / "images"
        if not (images / f"{Path(stem).name}_dark{suffix}").is_file():
            return found[0]
        light = f"{before}{stem}{suffix}#only-light{after}"
        return f"{light}{before}{stem}_dark{suffix}#only-dark{after}"

    return IMAGE.sub(both, html)
