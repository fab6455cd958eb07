"""The reference of the HTTP API, from the OpenAPI document of the server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, cast

from aanet.web.app import create_app
from aanet.web.live import LiveSession
from aanet.web.settings import Settings
from docs_site.markdown import code, definition, escape, table

DOCUMENT = "reference/openapi.json"


@lru_cache(maxsize=1)
def document() -> dict[str, Any]:
    """The OpenAPI document of a server that has everything: a token and a live session."""
    # Only the routes are made here; a session and a matcher are opened when a request comes.
    settings = Settings(models=("sgbm",), token="token", open_at_once=False)
    app = create_app(settings, live=cast(LiveSession, object()))
    try:
        return app.openapi()
    finally:
        app.state.service.catalog.close()


def listing() -> str:
    """A table of all operations, a section for each, and the objects of requests and responses."""
    paths = document()["paths"]
    operations = [
        (method, path, operation) for path, methods in paths.items() for method, operation in methods.items()
    ]
    rows = [
        [f"[{code(_title(method, path))}](#{_anchor(method, path)})", escape(operation["summary"])]
        for method, path, operation in operations
    ]
    blocks = [table(["operation", ""], rows)]
    for operation in operations:
        blocks += _operation(*operation)
    blocks.append("## Objects")
    for name, schema in document()["components"]["schemas"].items():
        blocks += [f"### {name}", escape(_one_line(schema.get("description", ""))), _fields(schema)]
    return "\n\n".join(blocks)


def _title(method: str, path: str) -> str:
    return f"{method.upper()} {path}"


def _anchor(method: str, path: str) -> str:
    return f"{method}-{path.strip('/').replace('/', '-')}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _operation(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"## {code(_title(method, path))} {{ #{_anchor(method, path)} }}"
    yield escape(_one_line(operation.get("description", operation["summary"])))
    form = operation.get("requestBody", {}).get("content", {}).get("multipart/form-data")
    if form:
        yield "**Parts of the form** (`multipart/form-data`)"
        yield _properties(form["schema"])
    if operation.get("parameters"):
        yield "**Query parameters**"
        yield "\n".join(map(_parameter, operation["parameters"]))
    yield "**Responses**"
    yield table(["status", "", "content"], map(_response, operation["responses"].items()))
    headers = operation["responses"].get("200", {}).get("headers", {})
    if headers:
        yield "**Headers of the response**"
        rows = [
            [code(name), escape(facts["description"]), code(facts["example"])]
            for name, facts in headers.items()
        ]
        yield table(["header", "", "example"], rows)


def _parameter(parameter: dict[str, Any]) -> str:
    schema = _without_null(parameter["schema"])
    default = parameter["schema"].get("default")
    facts = [_kind(schema)] + ([f"default {code(json.dumps(default))}"] if default is not None else [])
    return definition(
        f"{code(parameter['name'])} *{', '.join(facts)}*", escape(_one_line(parameter.get("description", "")))
    )


def _properties(schema: dict[str, Any]) -> str:
    required = schema.get("required", [])
    entries = []
    for name, facts in schema["properties"].items():
        need = "required" if name in required else "optional"
        entries.append(definition(f"{code(name)} *file, {need}*", escape(facts.get("description", ""))))
    return "\n".join(entries)


def _fields(schema: dict[str, Any]) -> str:
    rows = [
        [code(name), _kind(_without_null(facts)), escape(_one_line(facts.get("description", "")))]
        for name, facts in schema["properties"].items()
    ]
    return table(["field", "type", ""], rows)


def _response(entry: tuple[str, dict[str, Any]]) -> list[str]:
    status, response = entry
    kinds = []
    for media_type, facts in response.get("content", {}).items():
        reference = facts.get("schema", {}).get("$ref", "")
        kinds.append(_link(reference) if reference else code(media_type))
    return [status, escape(response["description"]), ", ".join(dict.fromkeys(kinds))]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an optional value, without null."""
    choices = [each for each in schema.get("anyOf", []) if each.get("type") != "null"]
    return {**schema, **choices[0]} if choices else schema


def _link(reference: str) -> str:
    name = reference.rpartition("/")[2]
    return f"[{name}](#{name.lower()})"


def _kind(schema: dict[str, Any]) -> str:
    """The type of a value in words."""
    if "$ref" in schema:
        return _link(schema["$ref"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'])}" if schema.get("items") else "list"
    if "enum" in schema:
        return "one of " + ", ".join(map(code, schema["enum"]))
    kind = str(schema.get("type", "value"))
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    if low is not None and high is not None:
        return f"{kind} from {low} to {high}"
    return kind if low is None else f"{kind}, {'above' if 'exclusiveMinimum' in schema else 'at least'} {low}"


def text() -> str:
    """The document as a file."""
    return json.dumps(document(), indent=2) + "\n"
