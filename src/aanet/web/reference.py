"""The API page: the OpenAPI document for people, as HTML that needs nothing from other servers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from aanet.web.examples import BASE, LANGUAGES, call_of
from aanet.web.paths import API_PREFIX
from aanet.web.prose import code, prose

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>aanet · HTTP API</title>
  <link rel="icon" href="static/icon.svg" type="image/svg+xml">
  <link rel="stylesheet" href="static/css/theme.css">
  <link rel="stylesheet" href="static/css/reference.css">
  <script type="module" src="static/js/reference.js"></script>
</head>
<body data-base="{base}">
<a class="skip" href="#content">Skip to the content</a>
<header>
  <img src="static/icon.svg" alt="" width="32" height="32">
  <div><h1>aanet <span>HTTP API</span></h1><p>Version {version}</p></div>
  <nav aria-label="Page">
    <a href="./">Web page</a>
    <a href="{openapi}">OpenAPI document</a>
    <button id="theme" type="button" class="quiet" hidden>Theme</button>
  </nav>
</header>
<div class="columns">
<nav class="contents" aria-label="Contents"><ul>
<li><a href="#start">Start</a></li>
{contents}
<li><a href="#schemas">Schemas</a></li>
</ul></nav>
<main id="content">
<section id="start">
{introduction}
<h2>A pair to try it with</h2>
<p>The server has the Motorcycle pair of Middlebury 2014 with its calibration.
The examples work with these files.</p>
{sample}
</section>
{operations}
<section id="schemas"><h2>Schemas</h2>
{schemas}
</section>
</main>
</div>
</body>
</html>
"""


def page(document: dict[str, Any]) -> str:
    """Return the API page of an OpenAPI document."""
    files = ("left.png", "right.png", "calib.json")
    sample = "curl" + "".join(f" \\\n    -O {BASE}/page/motorcycle/{file}" for file in files)
    return _PAGE.format(
        base=BASE,
        version=escape(document["info"]["version"]),
        openapi=f"{API_PREFIX[1:]}/openapi.json",
        contents="\n".join(_contents(document)),
        introduction=_introduction(document),
        sample=_listing("curl", sample),
        operations="\n".join(_tag(document, each) for each in document["tags"]),
        schemas="\n".join(_schema(*each) for each in document["components"]["schemas"].items()),
    )


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield method, path and description of every operation."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def _of_tag(document: dict[str, Any], name: str) -> list[tuple[str, str, dict[str, Any]]]:
    return [each for each in operations(document) if name in each[2]["tags"]]


def _contents(document: dict[str, Any]) -> Iterator[str]:
    for tag in document["tags"]:
        links = [
            f'<li><a href="#{each["operationId"]}">{escape(each["summary"])}</a></li>'
            for _, _, each in _of_tag(document, tag["name"])
        ]
        yield f"<li>{escape(tag['name'])}<ul>{''.join(links)}</ul></li>"


def _introduction(document: dict[str, Any]) -> str:
    scheme = document["components"]["securitySchemes"]["token"]
    needed = any(each.get("security") for _, _, each in operations(document))
    access = "This server requires a token." if needed else "This server requires no token."
    about = prose(document["info"]["description"])
    return f"{about}<h2>Access</h2><p>{access}</p>{prose(scheme['description'])}"


def _tag(document: dict[str, Any], tag: dict[str, str]) -> str:
    parts = [_operation(*each) for each in _of_tag(document, tag["name"])]
    return f"<section><h2>{escape(tag['name'])}</h2>{prose(tag['description'])}{''.join(parts)}</section>"


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    name = operation["operationId"]
    parts = [
        f'<article id="{name}"><h3>{escape(operation["summary"])}</h3>',
        f'<p class="request"><b class="{method}">{method.upper()}</b> <code>{escape(path)}</code>'
        f'<span class="name">{name}</span></p>',
        prose(operation["description"]),
        _examples(method, path, operation),
    ]
    if operation.get("parameters"):
        rows = (_parameter(each) for each in operation["parameters"])
        parts.append(_table("Query parameters", rows))
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"]["multipart/form-data"]["schema"]
        parts.append(_table("Parts of the form", _properties(schema)))
    parts.append(_table("Responses", (_response(*each) for each in operation["responses"].items())))
    headers = operation["responses"]["200"].get("headers")
    if headers:
        rows = ((code(each), "", prose(fields["description"])) for each, fields in headers.items())
        parts.append(_table("Headers of the response", rows))
    return "".join(parts) + "</article>"


def _examples(method: str, path: str, operation: dict[str, Any]) -> str:
    call = call_of(method, path, operation)
    listings = (_listing(language, write(call)) for language, write in LANGUAGES.items())
    return f'<div class="examples">{"".join(listings)}</div>'


def _listing(language: str, text: str) -> str:
    return (
        f'<figure data-language="{language}"><figcaption>{language}</figcaption>'
        f"<pre><code>{escape(text)}</code></pre></figure>"
    )


def _parameter(parameter: dict[str, Any]) -> tuple[str, str, str]:
    schema = parameter["schema"]
    default = schema.get("default")
    facts = _type(schema)
    if default is not None:
        facts += f", {code(str(default).lower() if isinstance(default, bool) else str(default))} if not given"
    return code(parameter["name"]), facts, prose(parameter["description"])


def _properties(schema: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    required = schema.get("required", [])
    for name, facts in schema.get("properties", {}).items():
        kind = _type(facts) + ("" if name in required else ", optional")
        yield code(name), kind, prose(facts.get("description", ""))


def _response(status: str, response: dict[str, Any]) -> tuple[str, str, str]:
    content = response.get("content", {})
    kinds = []
    for media_type, facts in content.items():
        reference = facts.get("schema", {})
        linked = f" ({_type(reference)})" if "$ref" in reference else ""
        kinds.append(f"{code(media_type)}{linked}")
    example = content.get("application/json", {}).get("example", {})
    problem = f", such as {code(example['code'])}" if status != "200" and "code" in example else ""
    body = "" if status != "200" else "<br>".join(kinds)
    return code(status), body, f"<p>{escape(response['description'].rstrip('.'))}{problem}.</p>"


def _schema(name: str, schema: dict[str, Any]) -> str:
    described = prose(schema.get("description", ""))
    return (
        f'<article id="schema-{name}"><h3>{name}</h3>{described}{_table("", _properties(schema))}</article>'
    )


def _table(title: str, rows: Iterable[tuple[str, str, str]]) -> str:
    heading = f"<h4>{title}</h4>" if title else ""
    cells = "".join(
        f'<tr><th scope="row">{name}</th><td>{facts}</td><td>{text}</td></tr>' for name, facts, text in rows
    )
    return f'{heading}<div class="table"><table><tbody>{cells}</tbody></table></div>'


def _type(schema: dict[str, Any]) -> str:
    """The type of a value in words, as HTML."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f'<a href="#schema-{name}">{name}</a>'
    if "anyOf" in schema:
        kinds = [_type(each) for each in schema["anyOf"] if each.get("type") != "null"]
        return " or ".join(kinds)
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    if "enum" in schema and len(schema["enum"]) <= 5:
        return " · ".join(code(each) for each in schema["enum"])
    kind = "file" if schema.get("format") == "binary" else escape(schema.get("type", "any"))
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f"{kind}, {low:g} to {high:g}"
    if "exclusiveMinimum" in schema:
        return f"{kind}, more than {schema['exclusiveMinimum']:g}"
    return kind
