"""The reference of the command line, from the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import typer

from aanet.cli.main import app
from docs_site.markdown import code, definition, escape, page, prose, table

_FOLDER = "reference/commands"
_OPTIONS = "Options"  # the title of options without a panel


class Command(NamedTuple):
    """A command with its name as one types it, such as `data check`."""

    name: str
    command: Any
    panel: str

    @property
    def path(self) -> str:
        """The page of the command."""
        return f"{_FOLDER}/{self.name.replace(' ', '-')}.md"


def commands() -> list[Command]:
    """All commands in the order of `aanet --help`; groups are replaced by their commands."""
    return list(_walk(typer.main.get_command(app), ""))


def _walk(group: Any, prefix: str, panel: str = "") -> Iterator[Command]:
    for name, command in group.commands.items():
        full = f"{prefix} {name}".strip()
        title = panel or getattr(command, "rich_help_panel", None) or "Commands"
        if hasattr(command, "commands"):
            yield from _walk(command, full, title)
        else:
            yield Command(full, command, title)


def pages() -> dict[str, str]:
    """The pages of the commands by path."""
    return {each.path: _page(each) for each in commands()}


def navigation() -> list[Any]:
    """The entries of the navigation."""
    listed = [{f"aanet {each.name}": each.path} for each in commands()]
    return [f"{_FOLDER}/index.md", *listed]


def listing() -> str:
    """All commands with a line on each, grouped as in the help."""
    panels: dict[str, list[list[str]]] = {}
    for each in commands():
        link = f"[`aanet {each.name}`]({each.path.removeprefix(_FOLDER + '/')})"
        panels.setdefault(each.panel, []).append([link, _summary(each)])
    blocks = [f"## {panel}\n\n{table(['command', ''], rows)}" for panel, rows in panels.items()]
    return "\n".join(blocks)


def _summary(command: Command) -> str:
    return prose(_paragraphs(command.command.help)[0])


def _paragraphs(text: str | None) -> list[str]:
    """The paragraphs of a help text, without the line breaks inside them."""
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text or "") if part.strip()] or [""]


def _page(command: Command) -> str:
    parameters = [each for each in command.command.params if not getattr(each, "hidden", False)]
    arguments = [each for each in parameters if each.param_type_name == "argument"]
    options = [each for each in parameters if each.param_type_name == "option"]
    usage = " ".join(["aanet", command.name, *map(_placeholder, arguments), "[OPTIONS]"])
    blocks = [f"```\n{usage}\n```", *map(_paragraph, _paragraphs(command.command.help))]
    if arguments:
        blocks += ["## Arguments", "\n".join(_definition(each) for each in arguments)]
    panels: dict[str, list[Any]] = {}
    for each in options:
        panels.setdefault(getattr(each, "rich_help_panel", None) or _OPTIONS, []).append(each)
    for panel, listed in panels.items():
        blocks += [f"## {panel}", "\n".join(_definition(each) for each in listed)]
    return page(f"aanet {command.name}", *blocks)


def _paragraph(text: str) -> str:
    example = re.fullmatch(r"Examples?: (aanet .*)", text)
    return f"```\n{example[1]}\n```" if example else prose(text)


def _placeholder(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    name += "..." if argument.nargs == -1 else ""
    return name if argument.required else f"[{name}]"


def names(parameter: Any) -> list[str]:
    """The spellings of an option, or the placeholder of an argument."""
    if parameter.param_type_name == "argument":
        return [parameter.metavar or parameter.name.upper()]
    return [*parameter.opts, *parameter.secondary_opts]


def _definition(parameter: Any) -> str:
    shown = ", ".join(map(code, names(parameter)))
    is_option = parameter.param_type_name == "option"
    value = parameter.metavar or "" if is_option and not parameter.is_flag else ""
    anchor = f'<span id="{names(parameter)[0].strip("-").lower()}"></span>' if is_option else ""
    paragraphs = [prose(each) for each in _paragraphs(parameter.help)]
    facts = list(_facts(parameter))
    if facts:
        paragraphs.append(" ".join(facts))
    return definition(f"{anchor}{shown}{' ' + code(value) if value else ''}", *paragraphs)


def _facts(parameter: Any) -> Iterator[str]:
    default, shown = parameter.default, parameter.show_default
    if parameter.required:
        yield "*Required.*"
    elif isinstance(shown, str):
        yield f"*Default:* {escape(shown)}."
    elif shown and default is not None and default is not False and not callable(default):
        yield f"*Default:* {code(default)}."
    lowest, highest = (getattr(parameter, name, None) for name in ("min", "max"))
    if lowest is not None and highest is not None:
        yield f"*From* {lowest} *to* {highest}."
    elif lowest is not None:
        yield f"*At least* {lowest}."
    if parameter.envvar:
        yield f"*Environment variable:* {code(parameter.envvar)}."
