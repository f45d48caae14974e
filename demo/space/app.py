"""The demo as a Hugging Face Space: the packaged model and its photos."""

import halo_search.cli.main

if __name__ == "__main__":
    halo_search.cli.main.main(["demo", "--host", "0.0.0.0", "--port", "7860"])
