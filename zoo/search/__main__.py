"""`python -m zoo.search`, which is `halo search`: its commands are of `zoo.retriever`."""

import runpy

runpy.run_module("zoo.retriever", run_name="__main__")
