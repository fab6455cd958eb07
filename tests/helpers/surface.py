"""What programs of users rely on: names and parameters in Python, options of commands, requests over HTTP."""

from __future__ import annotations

import inspect
from typing import Any

import typer

import aanet

Surface = dict[str, list[str]]


def python() -> Surface:
    """The public names of `aanet`, with the parameters of functions and the public members of classes."""
    found: Surface = {}
    for name in aanet.__all__:
        value = getattr(aanet, name)
        if inspect.isclass(value):
            members = [each for each in dir(value) if not each.startswith("_")]
            found[name] = [*members, *(f"({each})" for each in _parameters(value))]
        else:
            found[name] = [f"({each})" for each in _parameters(value)] if callable(value) else []
    return found


def _parameters(function: Any) -> list[str]:
    try:
        return [name for name in inspect.signature(function).parameters if name != "self"]
    except ValueError:  # of a built-in type
        return []


def commands() -> Surface:
    """The commands, with their options and arguments."""
    from aanet.cli.main import app

    found: Surface = {}
    _collect(typer.main.get_command(app), "aanet", found)
    return found


def _collect(command: Any, name: str, found: Surface) -> None:
    found[name] = sorted(
        option
        for parameter in command.params
        for option in ([*parameter.opts, *parameter.secondary_opts] or [parameter.name])
        if "completion" not in option
    )
    for word, child in getattr(command, "commands", {}).items():
        _collect(child, f"{name} {word}", found)


def requests() -> Surface:
    """The requests of the HTTP API, with their parameters and the fields of their bodies."""
    from aanet.web.app import create_app
    from aanet.web.settings import Settings

    server = create_app(Settings(models=("sgbm",)))
    document = server.openapi()
    server.state.service.stop()
    server.state.service.close()
    return {
        f"{method.upper()} {path}": [
            *sorted(parameter["name"] for parameter in operation.get("parameters", [])),
            *sorted(_fields(document, operation)),
        ]
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }


def _fields(document: dict[str, Any], operation: dict[str, Any]) -> list[str]:
    found = []
    for content in operation.get("requestBody", {}).get("content", {}).values():
        schema = content["schema"]
        name = schema.get("$ref", "").rpartition("/")[2]
        found += (document["components"]["schemas"][name] if name else schema).get("properties", {})
    return found


def keys(value: Any, place: str = "") -> set[str]:
    """The places of a JSON value; entries of a list count as one, and so do names of models."""
    if isinstance(value, dict):
        return {f"{place}.{key}" for key in value}.union(
            *(keys(value[key], f"{place}.{key}") for key in value)
        )
    if isinstance(value, list):
        return set().union(*(keys(each, f"{place}[]") for each in value))
    return set()
