"""What the package index, GitHub, torch.hub and citation managers read."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from html.parser import HTMLParser
from types import ModuleType

import pytest
import torch
import yaml
from markdown_it import MarkdownIt

from aanet.errors import AanetError
from aanet.matcher import StereoMatcher
from aanet.models.weights.files import bundled_names
from aanet.models.zoo import NETWORKS
from helpers.wheel_environment import ROOT

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
REPOSITORY = "https://example.org/owner/aanet"


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    """`hatch_build.py`."""
    pytest.importorskip("hatchling")
    module = ModuleType("hatch_build")
    exec(
        compile((ROOT / "hatch_build.py").read_text(encoding="utf-8"), "hatch_build.py", "exec"), vars(module)
    )
    return module


class Targets(HTMLParser):
    """Collects where the links and pictures of a page lead."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, list[str]] = {"img": [], "a": []}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if tag in self.found and name in ("src", "href") and value:
                self.found[tag].append(value)


def targets(markdown: str) -> dict[str, list[str]]:
    """Where the page that a description becomes leads."""
    page = Targets()
    page.feed(MarkdownIt().render(markdown))
    return page.found


@pytest.mark.parametrize("repository", ["", REPOSITORY])
def test_the_description_leads_nowhere_that_does_not_exist(hook: ModuleType, repository: str) -> None:
    found = targets(hook.description(README, repository, "v1.2.3"))
    assert not [each for each in found["img"] + found["a"] if not each.startswith(("https://", "#"))]
    files = [each.partition("v1.2.3/")[2] for each in found["img"]]
    assert bool(files) is bool(repository)
    assert all((ROOT / file).is_file() for file in files)


MARKDOWN = """A ![picture](docs/a.png) and a [page](docs/b.md#part), [here](#here), [there](https://example.org/x).

<img alt="x" src="docs/c.png"> ![abroad](https://example.org/d.png)
"""


def test_addresses_become_absolute(hook: ModuleType) -> None:
    assert hook.description(MARKDOWN, REPOSITORY, "v1") == (
        f"A ![picture]({REPOSITORY}/raw/v1/docs/a.png) and a [page]({REPOSITORY}/blob/v1/docs/b.md#part), "
        "[here](#here), [there](https://example.org/x).\n\n"
        f'<img alt="x" src="{REPOSITORY}/raw/v1/docs/c.png"> ![abroad](https://example.org/d.png)\n'
    )
    assert set(hook.links(f"{REPOSITORY}")) == {"Homepage", "Source", "Issues", "Changelog"}


def test_without_a_repository_pictures_and_links_to_files_are_left_out(hook: ModuleType) -> None:
    assert hook.description(MARKDOWN, "", "v1") == (
        "A  and a page, [here](#here), [there](https://example.org/x).\n\n"
        " ![abroad](https://example.org/d.png)\n"
    )
    assert hook.links("") == {}


def test_the_citation_is_complete() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    citation = yaml.safe_load(text)
    assert {"cff-version", "message", "title", "authors", "type"} <= citation.keys()
    assert citation["cff-version"] == "1.2.0"
    assert citation["license"] == SETTINGS["project"]["license"]
    assert citation["keywords"] == SETTINGS["project"]["keywords"]
    assert not {"version", "date-released"} & citation.keys()  # the version has one place
    assert citation.get("repository-code", "") == SETTINGS["tool"]["aanet"]["repository"]
    paper = citation["preferred-citation"]
    assert paper["type"] == "conference-paper"
    (bibtex,) = re.findall(r"^```bibtex\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    fields = dict(re.findall(r"(\w+)\s*= \{(.*)\}", bibtex))
    assert (paper["title"], str(paper["year"])) == (fields["title"], fields["year"])
    assert paper["collection-title"] == fields["booktitle"]
    names = [f"{author['family-names']}, {author['given-names']}" for author in paper["authors"]]
    assert " and ".join(names) == fields["author"]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the path of this process as it was."""
    monkeypatch.setattr(sys, "path", sys.path.copy())


@pytest.mark.usefixtures("hub")
def test_torch_hub_finds_the_networks_and_the_matcher() -> None:
    specification = importlib.util.spec_from_file_location("hubconf", ROOT / "hubconf.py")
    assert specification is not None
    assert specification.loader is not None
    hubconf = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(hubconf)
    # What torch.hub.list and torch.hub.help, which cannot look into folders, show of a repository.
    public = {name for name, value in vars(hubconf).items() if callable(value) and name[0] != "_"}
    assert public == {*NETWORKS, "stereo_matcher"}
    assert all("Args:" in getattr(hubconf, name).__doc__ for name in NETWORKS)


@pytest.mark.slow
@pytest.mark.usefixtures("hub")
def test_torch_hub_loads_weights_and_matchers() -> None:
    def load(*names: str, **options: object) -> object:
        return torch.hub.load(str(ROOT), *names, source="local", **options)

    network = load("stereonet_aa")
    assert isinstance(network, torch.nn.Module)
    assert not network.training
    images = torch.rand(1, 3, 48, 96)
    with torch.inference_mode():
        assert network(images, images).disparity.shape == (1, 48, 96)
    fresh = load("stereonet_aa", pretrained=False, max_disparity=24)
    assert fresh.architecture.max_disparity == 24  # type: ignore[attr-defined]
    assert isinstance(load("stereo_matcher", "sgbm"), StereoMatcher)
    assert "psmnet" not in bundled_names()
    with pytest.raises(AanetError, match="no bundled weights of psmnet"):
        load("psmnet")
    with pytest.raises(AanetError, match="weights of stereonet_aa, not of aanet"):
        load("aanet", weights="stereonet_aa")
