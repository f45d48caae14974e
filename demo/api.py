"""The demo's functions through Gradio's API, with typed names.

```python
from gradio_client import Client, handle_file

client = Client("http://127.0.0.1:7860")
client.predict(caption="a bird with a red crown", results=5, api_name="/find_images")
client.predict(image=handle_file("bird.jpg"), api_name="/find_captions")
```
"""

import gradio as gr

from demo.events import PICTURES, in_sentences, uploaded_image
from demo.service import SHOWN


def add(service):
    """Adds the endpoints to the page that is being built."""
    for function in (service.find_images, service.find_all, service.describe_gallery):
        gr.api(in_sentences(function), api_name=function.__name__)
    # Files only travel through components.
    image = uploaded_image(visible=False, label="image")
    similarity = gr.Dropdown(
        service.gallery.similarity_names,
        value=service.gallery.own_similarity,
        visible=False,
        label="similarity",
    )
    results = gr.Slider(1, SHOWN, 8, step=1, visible=False, label="results")
    answer = gr.JSON(visible=False, label="answer")
    never = gr.Button(visible=False)

    def find_captions(image, similarity, results):
        """The captions that describe an image, and how likely each fits."""
        return service.find_captions(image, similarity, results)

    inputs = [image, similarity, results]
    asked = in_sentences(find_captions)
    never.click(asked, inputs, answer, api_name="find_captions", **PICTURES)
