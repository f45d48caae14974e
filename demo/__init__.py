"""The demo: photo search that shows how sure it is.

`python -m demo [RUN]`. `service` answers questions about a `Gallery`, `routes` serves the page in
`web/`, and `api` offers the same functions to programs, with types.
"""
