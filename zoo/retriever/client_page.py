"""The page of a server: what it takes and gives, made of its schema, and a client to copy."""

import html
import json
from typing import Any

_CLIENT = """\
import json
import urllib.request


def ask(question, k=10, url="{base}ask"):
    body = json.dumps({{"question": question, "k": k}}).encode()
    request = urllib.request.Request(url, body, {{"Content-Type": "application/json"}})
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


answer = ask("a dog on a beach")
print(answer["verdict"], answer["probability"], answer["ids"])
"""


def client_page(schema: dict[str, Any], base: str) -> str:
    """HTML that needs nothing from elsewhere, of an OpenAPI schema and the server's address."""
    rows = []
    for path, methods in schema["paths"].items():
        for method, facts in methods.items():
            rows.append(f"<h2>{method.upper()} {path}</h2><p>{html.escape(facts['summary'])}</p>")
            content = facts.get("requestBody", {}).get("content", {}).get("application/json", {})
            name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
            fields = schema.get("components", {}).get("schemas", {}).get(name, {})
            for field, about in fields.get("properties", {}).items():
                text = f"{about.get('description', '')}; default {json.dumps(about.get('default'))}"
                rows.append(f"<p><code>{field}</code>: {html.escape(text)}</p>")
    client = html.escape(_CLIENT.format(base=base))
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Halo Zoo</title>"
        "<style>body{font:16px/1.5 system-ui;max-width:48rem;margin:2rem auto;padding:0 1rem}"
        "pre{overflow:auto;background:#8881;padding:1rem}</style>"
        f"<h1>{html.escape(schema['info']['summary'])}</h1>{''.join(rows)}"
        f"<h2>A client</h2><pre>{client}</pre></html>"
    )
