"""JSON values with one part replaced or gone, for what reads them to refuse."""

import json


def changed(value, path, new):
    """A copy of `value` with what is at `path` replaced; `...` takes it away."""
    value = json.loads(json.dumps(value))
    *parents, last = path
    place = value
    for key in parents:
        place = place[key]
    if new is ...:
        del place[last]
    else:
        place[last] = new
    return value
