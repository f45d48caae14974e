"""The demo as a Hugging Face Space: the packaged model and the birds that it finds."""

from zoo import halo

if __name__ == "__main__":
    halo.main(["demo", "--host", "0.0.0.0", "--port", "7860"])
