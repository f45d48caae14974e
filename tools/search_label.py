"""MkDocs' hook: the theme's search, a dialog, has a name for screen readers."""

DIALOG = 'data-md-component="search" role="dialog"'


def on_post_page(output, page, config):
    """The page with the dialog's name."""
    return output.replace(DIALOG, f'{DIALOG} aria-label="Search"')
