"""Memory over many questions."""

import gc

import httpx
import pytest

import memory


@pytest.mark.very_slow
def test_memory_stays_over_many_visitors(served, photo):
    """Each uploads a picture and asks once. Gradio keeps the state of the last visitors alone."""
    sizes = []
    with httpx.Client(base_url=served[0], timeout=60) as http:
        events = http.get("/config").json()["dependencies"]
        (event,) = [one["id"] for one in events if one["api_name"] == "find_captions"]
        for number in range(1200):
            content = photo.read_bytes() + number.to_bytes(2, "big")
            path = http.post("/gradio_api/upload", files={"files": ("a.jpg", content)}).json()[0]
            image = {"path": path, "meta": {"_type": "gradio.FileData"}}
            body = {"data": [image, "csd", 3, 1], "fn_index": event, "session_hash": f"s{number}"}
            assert http.post("/gradio_api/queue/join", json=body).status_code == 200
            answer = http.get("/gradio_api/queue/data", params={"session_hash": f"s{number}"})
            assert '"success":true' in answer.text
            if number % 300 == 299:
                gc.collect()
                sizes.append(memory.held() / 2**20)
    print("MiB after every 300 visitors:", [round(size) for size in sizes])
    assert sizes[3] - sizes[1] < 30
