"""Pages are in the navigation, links from the README lead somewhere, and the 3D view has its modules."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml
from pymdownx.slugs import slugify

from aanet.data.motorcycle import motorcycle
from helpers.scripts import load_script

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SCRIPTS = ROOT / "src/aanet/web/static/js"


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    return load_script("docs_hook")


class Loader(yaml.SafeLoader):
    """Reads `mkdocs.yml`, where a function is named by a tag."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)
SETTINGS = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader)


def paths(entries: Any) -> Iterator[str]:
    if isinstance(entries, str):
        yield entries
    else:
        for entry in entries.values() if isinstance(entries, dict) else entries:
            yield from paths(entry)


def test_the_navigation_has_every_page_once_and_nothing_else(
    hook: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook.networks, "_page", lambda name: f"# {name}")
    written = {str(page.relative_to(DOCS).as_posix()) for page in DOCS.rglob("*.md")}
    from_notebooks = {f"notebooks/{each.stem}.md" for each in DOCS.glob("notebooks/*.ipynb")}
    generated = set(hook.generated_pages())
    assert not written & generated, "a generated page must not be committed"
    listed = list(paths(hook.fill(SETTINGS["nav"])))
    assert len(listed) == len(set(listed))
    assert set(listed) == written | generated | from_notebooks


def test_the_strict_build_checks_links_and_anchors_and_loads_nothing_from_elsewhere() -> None:
    for section in SETTINGS["validation"].values():
        assert set(section.values()) == {"warn"}
    assert SETTINGS["theme"]["font"] is False
    assets = [*SETTINGS["extra_css"], *SETTINGS.get("extra_javascript", [])]
    assert all((DOCS / asset).is_file() for asset in assets)
    for page in [*DOCS.rglob("*.md"), *(DOCS / "assets").iterdir()]:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"""(src=|@import|url\(|from )["']?https?://""", text), page
        assert not re.search(r"!\[[^]]*\]\(https?://", text), page


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, as the site and code hosts make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {slugify(case="lower")(heading.replace("`", ""), "-") for heading in headings}


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_links_of_files_at_the_top_lead_to_pages_and_sections(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    assert links or name != "README.md"
    for link in links:
        path, _, anchor = link.partition("#")
        target = ROOT / (path or name)
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_links_to_files_outside_of_docs_lead_to_their_pages(hook: ModuleType) -> None:
    relink = hook.project.relink
    assert relink("[a](../CHANGELOG.md#unreleased)", "../") == "[a](changelog.md#unreleased)"
    assert relink("[a](../README.md#limits)", "../") == "[a](index.md)"
    assert relink("[a](../../README.md#networks)", "../../") == "[a](../networks/index.md)"
    assert (
        relink("[a](../../SECURITY.md) [b](../video.md)", "../../") == "[a](../security.md) [b](../video.md)"
    )
    assert (
        relink("[a](docs/video.md#output) [b](CONTRIBUTING.md)", "")
        == "[a](video.md#output) [b](contributing.md)"
    )
    notebooks = "[a](../notebooks/b.ipynb) [c](d.ipynb){ download }"
    assert relink(notebooks, "../../") == "[a](../notebooks/b.md) [c](d.ipynb){ download }"
    assert relink("[a](https://example.com/README.md)", "") == "[a](https://example.com/README.md)"


def test_the_3d_view_imports_what_the_modules_of_the_page_export() -> None:
    script = (DOCS / "assets/motorcycle.js").read_text(encoding="utf-8")
    imports = re.findall(r'import \{ ([^}]+) \} from "\./viewer/([\w.]+)"', script)
    assert imports
    for names, module in imports:
        source = (SCRIPTS / module).read_text(encoding="utf-8")
        for name in names.split(", "):
            assert re.search(rf"^export (async )?(class|function|const) {name}\b", source, re.MULTILINE), name
    page = (DOCS / "motorcycle.md").read_text(encoding="utf-8")
    used = set(re.findall(r'\$\("([\w-]+)"\)', script))
    assert used == set(re.findall(r'\bid="([\w-]+)"', page))


def test_the_files_of_the_3d_view_hold_the_prediction_and_are_small(
    hook: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = motorcycle()
    predicted = np.where(pair.valid, pair.disparity, np.float32(np.nan))
    confidence = np.linspace(0, 1, predicted.size, dtype=np.float32).reshape(predicted.shape)
    result = SimpleNamespace(disparity=predicted, confidence=confidence, left=pair.left, model="aanet_fast")
    monkeypatch.setattr(hook.motorcycle, "predict", lambda _: result)
    made = hook.motorcycle.cloud_files()
    assert sum(map(len, made.values())) < 1_500_000
    with np.load(io.BytesIO(made["assets/motorcycle/maps.npz"])) as maps:
        stored = maps["disparity"].view("<u2")[..., 0] / 256
        np.testing.assert_allclose(stored, np.nan_to_num(predicted), atol=1 / 512)
        np.testing.assert_allclose(maps["confidence"] / 255, confidence, atol=1 / 510)
    facts = json.loads(made["assets/motorcycle/facts.json"])
    assert len(facts["ramp"]) == 256
    assert facts["camera"]["baseline_m"] > 0


def test_a_notebook_becomes_a_page_with_its_outputs(hook: ModuleType, tmp_path: Path) -> None:
    picture = b"not really a picture"
    outputs = [
        {"output_type": "stream", "text": ["\x1b[31mred\x1b[0m\n"]},
        {
            "output_type": "display_data",
            "data": {"image/png": base64.b64encode(picture).decode(), "text/plain": "<Figure>"},
        },
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "First words."]},
        {"cell_type": "code", "source": ["print(1)"], "outputs": outputs},
        {"cell_type": "code", "source": [], "outputs": []},
    ]
    file = tmp_path / "some_steps.ipynb"
    file.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    text, pictures = hook.notebooks.convert(file)
    assert text.startswith("# Title\n\n[Download this notebook](some_steps.ipynb)")
    assert 'First words.\n\n```python\nprint(1)\n```\n\n```text title="Output"\nred\n```\n\n![' in text
    assert pictures == {"some_steps-1-1.png": picture}
