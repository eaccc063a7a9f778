"""The description of the API: the OpenAPI document with responses as they are sent, and a page to read it.

The page is plain HTML made here, without scripts or files from elsewhere, so it works offline and under the service's
content policy.
"""

import json
import re
from html import escape
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from surepick.service.models import Refusal

Schema = dict[str, Any]

REFUSALS = {
    "401": "Who is asking is not known here: a token or link is missing, wrong or expired.",
    "403": "Whoever is asking may not do this.",
    "404": "There is no such thing.",
    "409": "It contradicts what was recorded or decided before; nothing was changed.",
    "422": "It cannot be used; nothing was changed.",
    "429": "Too many requests; Retry-After says how long to wait.",
    "503": "The database cannot be used at the moment; Retry-After says when to try again.",
}

STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
code,pre{font-family:ui-monospace,monospace;font-size:.9em}pre{overflow:auto;padding:.8em;background:#8881}
table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.2em .8em .2em 0;
border-bottom:1px solid #8884}@media(max-width:40rem){td,th{display:block;border:0}tr{display:block;
border-bottom:1px solid #8884}}
h3,p,li,td{overflow-wrap:anywhere}h2{margin-top:2.5rem}h3{margin-bottom:.2rem}summary{cursor:pointer}
:root{color-scheme:light dark}"""


def describe(app: FastAPI) -> Schema:
    """The OpenAPI document of the application, made once: every refusal as it is sent, one sentence as JSON."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        schemas = made["components"]["schemas"]
        for unused in ("HTTPValidationError", "ValidationError"):  # the framework's form of a refusal, not ours
            schemas.pop(unused, None)
        schemas["Refusal"] = Refusal.model_json_schema()
        content = {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}
        for path, methods in made["paths"].items():
            for operation in methods.values():
                inapplicable = {"401", "403"} if "security" not in operation else set[str]()
                inapplicable |= {"404"} if "{" not in path else set[str]()
                for status, meaning in REFUSALS.items():
                    if status not in inapplicable:
                        known = operation["responses"].get(status, {})
                        # A status with a form of its own, as a service that is not ready has, keeps it.
                        own = known.get("content") if status != "422" else None
                        operation["responses"][status] = {"description": meaning, "content": own or content}
        app.openapi_schema = made
    return app.openapi_schema


def page(described: Schema) -> str:
    """The document as a page."""
    groups: dict[str, list[str]] = {}
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            group = operation.get("tags", ["other"])[0]
            groups.setdefault(group, []).append(_operation(f"{method.upper()} {path}", operation))
    sections = "".join(f"<h2>{escape(name.capitalize())}</h2>{''.join(parts)}" for name, parts in groups.items())
    schemas = "".join(
        f'<h3 id="schema-{escape(name)}"><code>{escape(name)}</code></h3>{_schema(schema)}'
        for name, schema in sorted(described["components"]["schemas"].items())
    )
    about = escape(described["info"]["description"])
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>surepick API</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="/static/icon.svg" type="image/svg+xml">'
        '<link rel="stylesheet" href="/docs.css"></head>'
        f"<body><h1>surepick API {escape(described['info']['version'])}</h1><p>{about} "
        '<a href="openapi.json">openapi.json</a> is the same for programs.</p>'
        f"{sections}<h2>Schemas</h2>{schemas}</body></html>"
    )


def _operation(name: str, operation: Schema) -> str:
    parameters = "".join(
        f"<tr><td><code>{escape(parameter['name'])}</code> in {escape(parameter['in'])}</td>"
        f"<td>{_type(parameter.get('schema', {}))}</td><td>{_text(parameter.get('description', ''))}</td></tr>"
        for parameter in operation.get("parameters", ())
    )
    bodies = "".join(
        f"<p>Body, {escape(kind)}: {_type(content.get('schema', {}))}</p>"
        for kind, content in operation.get("requestBody", {}).get("content", {}).items()
    )
    responses = "".join(
        f"<tr><td>{escape(status)}</td><td>{_text(response['description'])}</td><td>"
        + ", ".join(_type(content.get("schema", {})) for content in response.get("content", {}).values())
        + "</td></tr>"
        for status, response in sorted(operation["responses"].items())
    )
    return (
        f"<h3><code>{escape(name)}</code></h3><p>{_text(operation.get('description', ''))}</p>"
        + (f"<table>{parameters}</table>" if parameters else "")
        + bodies
        + f"<details><summary>Responses</summary><table>{responses}</table></details>"
    )


def _text(written: str) -> str:
    """A description as HTML, with what stands between backquotes as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(written))


def _schema(schema: Schema) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code>{'' if name in schema.get('required', ()) else ' (optional)'}</td>"
        f"<td>{_type(field)}</td><td>{_text(field.get('description', ''))}</td></tr>"
        for name, field in schema.get("properties", {}).items()
    )
    return f"<p>{_text(schema.get('description', ''))}</p>" + (f"<table>{rows}</table>" if rows else "")


def _type(schema: Schema) -> str:
    """A type in short, with links to schemas."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rsplit("/", 1)[1])
        return f'<a href="#schema-{name}"><code>{name}</code></a>'
    if "anyOf" in schema:
        return " or ".join(_type(option) for option in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(f"<code>{escape(json.dumps(value))}</code>" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    limits = [
        f"{word} {schema[key]}"
        for key, word in (("minimum", "at least"), ("maximum", "at most"), ("maxLength", "at most characters:"))
        if key in schema
    ]
    default = [f"default {escape(json.dumps(schema['default']))}"] if "default" in schema else []
    return ", ".join([escape(str(schema.get("type", "anything"))), *map(escape, limits), *default])
