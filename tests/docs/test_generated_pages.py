"""The generated pages of the documentation contain everything that the code has."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import ModuleType

import pytest
import typer

import aanet
from aanet.cli.main import app
from aanet.data.datasets import DATASETS
from aanet.models import zoo
from aanet.models.complexity import Complexity
from aanet.models.weights import files
from aanet.outputs import OUTPUTS
from aanet.training.recipe import Recipe
from aanet.training.schema import Amount
from helpers.scripts import load_script


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    return load_script("docs_hook")


def test_every_command_has_a_page_with_every_option_and_argument(hook: ModuleType) -> None:
    pages = hook.commands.pages()
    seen = set()

    def visit(group: typer.core.TyperGroup, words: tuple[str, ...]) -> None:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                visit(command, (*words, name))
                continue
            full = " ".join((*words, name))
            text = pages[f"reference/commands/{full.replace(' ', '-')}.md"]
            for parameter in command.params:
                spellings = (
                    parameter.opts
                    if parameter.param_type_name == "option"
                    else [parameter.metavar or parameter.name.upper()]
                )
                assert all(f"`{spelling}`" in text for spelling in spellings), (full, spellings)
                first = " ".join((parameter.help or "").split())[:25]
                assert hook.commands.prose(first)[:20] in text, (full, parameter.name)
            seen.add(full)

    visit(typer.main.get_command(app), ())
    assert {"predict", "data check", "calibrate board"} <= seen
    assert len(pages) == len(seen)
    listing = hook.commands.listing()
    assert all(f"`aanet {name}`" in listing for name in seen)


def test_a_default_a_range_and_an_environment_variable_are_shown(hook: ModuleType) -> None:
    serve = hook.commands.pages()["reference/commands/serve.md"]
    port = serve[serve.index("`--port`") :]
    assert port[: port.index("`--token`")].endswith(
        '*Default:* `8000`. *From* 0 *to* 65535.\n\n<span id="token"></span>'
    )
    assert "*Environment variable:* `AANET_TOKEN`." in serve
    assert "*Default:* `0.0`." in hook.commands.pages()["reference/commands/predict.md"]  # --min-confidence


def test_every_recipe_key_stands_with_its_default_and_an_explanation(hook: ModuleType) -> None:
    listing = hook.recipe_keys.listing()
    tables = hook.recipe_keys.tables()
    assert {"", "network", "data", "stage", "optimizer", "validation.data", "run"} <= set(tables)
    for name, (cls, several) in tables.items():
        assert (f"`[[{name}]]`" if several else f"`[{name}]`" if name else "At the top") in listing
        for key in hook.recipe_keys.keys(cls):
            assert key.meaning, f"{cls.__name__}.{key.name} has no comment that explains it"
            assert f"| `{key.name}` | {key.kind} | {key.default} |" in listing
    names = {field for field in Recipe.__dataclass_fields__ if field not in tables}
    assert names == {key.name for key in hook.recipe_keys.keys(Recipe)}
    assert "| `erase_px` | list of 2, each a whole number, 1 … 32,767 | `[40, 90]` |" in listing


def test_comments_before_behind_and_below_a_field(hook: ModuleType) -> None:
    assert hook.recipe_keys.comments_of(Toy) == {
        "behind": "on the same line",
        "before": "in the line before",
        "wrapped": "in parentheses",
    }


@dataclass
class Toy:
    """# no comment: a docstring."""

    behind: int = 1  # on the same line
    # in the line before
    before: int = 2
    none: int = 3
    wrapped: tuple[Amount, ...] = ()  # in parentheses

    def method(self) -> None:
        # of the code
        del self.none


@pytest.mark.slow
def test_every_network_has_a_page_with_its_card(hook: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Complexity(1_230_000, 4_560_000_000, 7_890_000_000, 11, 12, 13)
    monkeypatch.setattr(
        hook.networks, "cost", lambda _: counted
    )  # counted by a test of its own, which is slow
    pages, choices, sizes = hook.networks.pages(), hook.networks.choices(), hook.networks.sizes()
    assert len(pages) == len(zoo.NETWORKS)
    for name, card in zoo.NETWORKS.items():
        page = pages[f"networks/{name}.md"]
        assert page.startswith(f"# {card.title}\n")
        assert hook.networks.escape(card.when) in page
        assert hook.networks.escape(card.when) in choices
        for part in ("1.23 M", "4.56", "7.9", "| 3D convolutions | 11 |"):
            assert part in page
        assert f"[{card.title}]({name}.md) | 1.23 M" in sizes
        assert page.count("<strong>") == (6 if name == "ganet" else 5)
    for name in files.bundled_names():
        page = pages[f"networks/{name.split(':')[0]}.md"]
        assert "### Limits" in page
        assert f"]({name}.jpg)" in page
    assert "| Scene Flow test set | table 1 | EPE 0.87, > 1 px (%) 9.3 |" in pages["networks/aanet.md"]


def test_every_operation_parameter_and_object_of_the_http_api_is_listed(hook: ModuleType) -> None:
    listing, document = hook.http_api.listing(), hook.http_api.document()
    assert {"/api/v1/disparity", "/api/v1/live", "/api/v1/healthz"} <= set(document["paths"])
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            section = listing[listing.index(f"## `{method.upper()} {path}`") :].partition("\n## ")[0]
            for parameter in operation.get("parameters", []):
                assert f"`{parameter['name']}` *" in section
            for status in operation["responses"]:
                assert f"| {status} |" in section
    for name, schema in document["components"]["schemas"].items():
        section = listing[listing.index(f"### {name}\n") :].partition("\n### ")[0]
        assert all(f"| `{field}` |" in section for field in schema["properties"])
    assert "`left` *file, required*" in listing


def test_every_public_name_output_dataset_and_submission_is_listed(hook: ModuleType) -> None:
    names = hook.python_api.listing()
    assert all(f"heading: aanet.{name}\n" in names for name in aanet.__all__ if not name.startswith("_"))
    assert "::: aanet.matcher.StereoMatcher" in names
    errors = hook.python_api.pages()["reference/python/errors.md"]
    assert 'filters: ["!^_", "!^AanetError$"]' in errors  # documented once, among the public names
    outputs, datasets = hook.file_formats.outputs(), hook.file_formats.datasets()
    assert all(f"| `{name}` | `{output.types[0].suffix}`" in outputs for name, output in OUTPUTS.items())
    for name, dataset in DATASETS.items():
        assert f"{{ #{name} }}" in datasets
        assert all(f"`{group.left}`" in datasets for group in dataset.CARD.groups)
        assert (f"| `{name}` |" in hook.file_formats.submissions()) == (dataset.CARD.submission is not None)


@pytest.mark.parametrize(
    ("plain", "written"),
    [
        ("a|b *c* <d> [e] f_g", r"a\|b \*c\* \<d\> \[e\] f\_g"),
        ("`a_b|c` and d_e", r"`a_b|c` and d\_e"),
        ("with --max-depth, not a--b", "with `--max-depth`, not a--b"),
    ],
)
def test_help_texts_are_literal(hook: ModuleType, plain: str, written: str) -> None:
    assert hook.commands.prose(plain) == written


def test_a_page_with_an_unknown_part_is_an_error(hook: ModuleType) -> None:
    assert "| `kitti2015` |" in hook.insert("before\n<!-- generated: submissions -->\nafter")
    assert not re.search("generated", hook.insert("<!-- generated: outputs -->"))
    with pytest.raises(KeyError, match="no-such-part"):
        hook.insert("<!-- generated: no-such-part -->")
