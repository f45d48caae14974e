"""The demo: retrieval that you can question, with uncertainty that you can see.

`python -m demo [RUN]`. Everything behind the page is a plain function of a `Gallery`; `page` draws
it and `api` gives it typed names.
"""
