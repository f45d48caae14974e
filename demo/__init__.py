"""The demo: photo search that shows how sure it is.

`python -m demo [RUN]`. `service` answers over a `Gallery`; `routes` serves the page in `web/`, and
`api` gives the functions typed names for programs.
"""
