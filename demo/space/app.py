"""The demo as a Hugging Face Space: the packaged model and the birds that it finds."""

import halo_zoo

if __name__ == "__main__":
    halo_zoo.main(["demo", "--host", "0.0.0.0", "--port", "7860"])
