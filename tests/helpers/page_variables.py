"""Variables of the shell that a page sets in a block, put into the commands that name them."""

import re

SETTING = re.compile(r'^([A-Z]\w+)="(.*)"$', re.M)


def with_variables(command, page):
    """A command of a page as the shell reads it; a name that the page does not set is an error."""
    values = dict(SETTING.findall(page))
    return re.sub(r"\$(\w+)", lambda name: values[name[1]], command)
