"""Example code for the operations of an OpenAPI document: curl, Python and JavaScript."""

from __future__ import annotations

import json
from typing import Any, NamedTuple
from urllib.parse import urlencode

BASE = "http://127.0.0.1:8000"  # which the page replaces by the address under which it was opened
_FILES = {"left": "left.png", "right": "right.png"}
_JSON = "application/json"


class Call(NamedTuple):
    """One request, as examples show it.

    Attributes:
        method: GET or POST.
        path: The path below the server.
        query: The parameters.
        files: The parts of a form, with the names of their files.
        token: Whether the operation needs the token.
        saved_as: The name of the file in the response; None for a response of text or JSON.
        is_json: Whether the response is JSON.
    """

    method: str
    path: str
    query: dict[str, str]
    files: dict[str, str]
    token: bool
    saved_as: str | None
    is_json: bool

    @property
    def url(self) -> str:
        """The URL without the query."""
        return BASE + self.path

    @property
    def whole_url(self) -> str:
        """The URL with the query."""
        return f"{self.url}?{urlencode(self.query)}" if self.query else self.url


def call_of(method: str, path: str, operation: dict[str, Any]) -> Call:
    """Return a typical request of an operation, with the document's own example values."""
    given = {each["name"]: each["schema"]["examples"][0] for each in operation.get("parameters", [])}
    has_body = "requestBody" in operation
    query = {"format": given["format"]} if "format" in given else {}
    if method == "post" and not has_body:  # which changes what it is told to
        query = {name: json.dumps(value) for name, value in given.items()}
    content = operation["responses"]["200"].get("content", {})
    saved_as = query.get("format") if len(content) > 1 else None
    return Call(
        method.upper(),
        path,
        query,
        dict(_FILES) if has_body else {},
        bool(operation.get("security")),
        saved_as,
        saved_as is None and _JSON in content,
    )


def curl(call: Call) -> str:
    """The request as a command."""
    options = ["-X POST"] if call.method == "POST" and not call.files else []
    options += ['-H "Authorization: Bearer $AANET_TOKEN"'] if call.token else []
    options += [f"-F {part}=@{file}" for part, file in call.files.items()]
    options += [f"-o {call.saved_as}"] if call.saved_as else []
    line = " ".join(["curl", *options])
    url = f'"{call.whole_url}"' if call.query else call.whole_url
    return f"{line} \\\n    {url}" if len(line) + len(url) > 70 else f"{line} {url}"


def python(call: Call) -> str:
    """The request with httpx."""
    imports = ["from pathlib import Path"] if call.files or call.saved_as else []
    imports = ["import os", *imports] if call.token else imports
    arguments = [f'"{call.url}"']
    if call.query:
        arguments.append(f"params={json.dumps(call.query)}")
    if call.files:
        arguments.append("files=files, timeout=120")
    if call.token:
        arguments.append("headers=headers")
    lines = [*imports, "", "import httpx", ""] if imports else ["import httpx", ""]
    if call.token:
        lines.append('headers = {"Authorization": f"Bearer {os.environ[\'AANET_TOKEN\']}"}')
    if call.files:
        parts = ", ".join(f'"{part}": Path("{file}").read_bytes()' for part, file in call.files.items())
        lines.append(f"files = {{{parts}}}")
    joined = ", ".join(arguments)
    if len(joined) > 70:
        joined = "\n    " + ",\n    ".join(arguments) + ",\n"
    lines += [
        f"response = httpx.{call.method.lower()}({joined})",
        "if response.is_error:",
        '    raise SystemExit(response.json()["message"])',
    ]
    if call.saved_as:
        lines.append(f'Path("{call.saved_as}").write_bytes(response.content)')
    else:
        lines.append(f"print(response.{'json()' if call.is_json else 'text'})")
    return "\n".join(lines)


def javascript(call: Call) -> str:
    """The request in a browser."""
    lines = []
    options = [f'method: "{call.method}"'] if call.method != "GET" else []
    if call.files:
        lines.append("const form = new FormData();")
        lines += [
            f'form.append("{part}", document.querySelector("#{part}").files[0]);' for part in call.files
        ]
        options.append("body: form")
    if call.token:
        options.append("headers: { Authorization: `Bearer ${token}` }")
    url = f'"{call.whole_url}"'
    if options:
        url += f", {{ {', '.join(options)} }}"
    lines += [
        f"const response = await fetch({url});",
        "if (!response.ok) throw new Error((await response.json()).message);",
    ]
    kind = "blob" if call.saved_as else "json" if call.is_json else "text"
    lines.append(f"const result = await response.{kind}();")
    return "\n".join(lines)


LANGUAGES = {"curl": curl, "Python": python, "JavaScript": javascript}
