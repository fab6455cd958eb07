"""The pages of the networks, from their cards, the cards of their weights and the paper's tables."""

from __future__ import annotations

import html
import inspect
from functools import cache
from typing import Any

import torch
from torch import nn

from aanet.evaluation import paper
from aanet.models import zoo
from aanet.models.complexity import Complexity, complexity
from aanet.models.network import StereoNetwork
from aanet.models.weights import files
from docs_site.markdown import code, escape, page, table

# The steps of a prediction, by the names of a network's parts.
STEPS = {
    "features": "Features",
    "guidance": "Guidance",
    "cost_volume": "Cost volume",
    "aggregation": "Aggregation",
    "regression": "Regression",
    "refinement": "Refinement",
}


@cache
def cost(name: str) -> Complexity:
    """The complexity of a network, counted once per build."""
    return complexity(name)


@cache
def skeleton(name: str) -> StereoNetwork:
    """The network with shapes but without values, built once per build."""
    with torch.device("meta"):
        return zoo.card(name).build(192, False)


def path(name: str) -> str:
    """The page of a network."""
    return f"networks/{name}.md"


def weights_of(name: str) -> list[str]:
    """The names of the bundled weights of a network."""
    return [known for known in files.bundled_names() if known.split(":")[0] == name]


def pages() -> dict[str, str]:
    """The pages of the networks by path."""
    return {path(name): _page(name) for name in zoo.NETWORKS}


def navigation() -> list[Any]:
    """The entries of the navigation."""
    return ["networks/index.md", *({card.title: path(name)} for name, card in zoo.NETWORKS.items())]


def picture(weights: str) -> str:
    """The picture of a prediction of bundled weights."""
    return f"networks/{weights.replace(':', '-')}.jpg"


def choices() -> str:
    """A table of when to use which network."""
    rows = [
        [f"[{card.title}]({name}.md)", code(name), "yes" if weights_of(name) else "–", escape(card.when)]
        for name, card in zoo.NETWORKS.items()
    ]
    return table(["network", "name", "bundled weights", "when to use it"], rows)


def sizes() -> str:
    """A table of parameters, operations and layers beside the paper's."""
    rows = []
    for name, card in zoo.NETWORKS.items():
        ours, published = cost(name), paper.COMPARISON_3D.get(name) or paper.SIZE.get(name)
        figures = [f"{ours.parameters / 1e6:.2f} M", f"{published.parameters_m:.2f} M" if published else "–"]
        figures += [f"{ours.paper_macs / 1e9:.2f}", f"{published.macs_g:.2f}" if published else "–"]
        counts = map(str, (ours.conv3d, ours.deform_convs, ours.csa_modules))
        rows.append([f"[{card.title}]({name}.md)", *figures, f"{ours.total_macs / 1e9:.1f}", *counts])
    headings = ["network", "parameters", "paper", "GMACs, paper's rules", "paper", "total GMACs"]
    return table([*headings, "3D convolutions", "deformable", "CSA"], rows)


def _page(name: str) -> str:
    card = zoo.card(name)
    blocks = [
        f"{escape(card.summary[0].upper() + card.summary[1:])}.",
        f"**When to use it:** {escape(card.when)}",
        _diagram(name),
        _use(name),
        "## Numbers",
        _numbers(name),
        *_published(name),
    ]
    for weights in weights_of(name):
        text = files.card_file(weights).read_text(encoding="utf-8")
        title, _, rest = text.removeprefix("# ").partition("\n")
        figure = (
            f"![The Motorcycle pair: left image, disparity, and error, by {title}]({picture(weights)[9:]})"
        )
        blocks += [
            f"## {title.partition(': ')[2].capitalize()}",
            figure,
            rest.replace("\n## ", "\n### ").strip(),
        ]
    return page(card.title, *blocks)


def _first_line(builder: Any) -> str:
    return (inspect.getdoc(builder) or "").partition("\n")[0]


def _use(name: str) -> str:
    if weights_of(name):
        lines = [
            f'matcher = aanet.StereoMatcher("{name}")',
            f"aanet predict left.png right.png --model {name}",
        ]
    else:
        lines = [
            f'network = aanet.build_network("{name}")  # new weights, for training',
            "aanet predict left.png right.png --model FILE  # a checkpoint of this network",
        ]
    return f"```python\n{lines[0]}\n```\n\n```\n{lines[1]}\n```"


def _diagram(name: str) -> str:
    """The parts of a network in the order of a prediction, as boxes that wrap on narrow screens."""
    boxes = []
    for part, title in STEPS.items():
        module = getattr(skeleton(name), part, None)
        if not isinstance(module, nn.Module):
            continue
        parameters = sum(parameter.numel() for parameter in module.parameters())
        facts = [f"{parameters / 1e6:.2f} M parameters"] if parameters else []
        scales = getattr(module, "scales", None)
        facts += (
            ["at " + ", ".join("full size" if scale == 1 else f"1/{scale}" for scale in scales)]
            if scales
            else []
        )
        lines = [f"<strong>{title}</strong>", f"<code>{html.escape(type(module).__name__)}</code>", *facts]
        boxes.append(f"<div>{'<br>'.join(lines)}</div>")
    return "\n".join(['<div class="pipeline">', *boxes, "</div>"])


def _numbers(name: str) -> str:
    card, ours, rule = zoo.card(name), cost(name), skeleton(name).sizes
    published = paper.COMPARISON_3D.get(name) or paper.SIZE.get(name)
    rows = [
        ["architecture", escape(_first_line(card.build)).rstrip("."), "–"],
        [
            "parameters",
            f"{ours.parameters / 1e6:.2f} M",
            f"{published.parameters_m:.2f} M" if published else "–",
        ],
        [
            "GMACs by the paper's rules",
            f"{ours.paper_macs / 1e9:.2f}",
            f"{published.macs_g:.2f}" if published else "–",
        ],
        ["total GMACs", f"{ours.total_macs / 1e9:.1f}", "–"],
    ]
    row = paper.COMPARISON_3D.get(name)
    counts = (ours.conv3d, ours.deform_convs, ours.csa_modules)
    theirs = (row.convolutions_3d, row.deformable_convolutions, row.csa_modules) if row else ("–",) * 3
    titles = ("3D convolutions", "deformable convolutions", "CSA modules")
    rows += [
        [title, str(count), str(other)] for title, count, other in zip(titles, counts, theirs, strict=True)
    ]
    memory = f"{card.bytes_per_pixel / 1000:g} GB per megapixel"
    memory += ", and 0.3 GB per 1000 pixels of width" if card.correlates else ""
    rows += [
        ["peak memory of a prediction", memory, "–"],
        ["disparity range", "fixed by the weights" if card.fixed_range else "any, chosen at prediction", "–"],
        ["image sizes", f"multiples of {rule.multiple}, at least {rule.minimum}; padded automatically", "–"],
        [
            "export to one graph for all sizes",
            "yes" if card.dynamic_shapes else "no; runs on torch only",
            "–",
        ],
    ]
    return table(["", "here", "paper"], rows)


def _published(name: str) -> list[str]:
    """The errors in the paper, of the authors' own weights."""
    found = [paper.published(dataset, name) for dataset in ("sceneflow", "kitti2012", "kitti2015")]
    rows = [
        [
            each.measured_on,
            f"table {each.table}",
            ", ".join(f"{_METRICS[key]} {value:g}" for key, value in each.metrics.items()),
        ]
        for each in found
        if each is not None
    ]
    if not rows:
        return []
    text = "Errors in the paper, of the authors' own weights, which are not included:"
    return ["## Published scores", text, table(["measured on", "where", "errors"], rows)]


_METRICS = {
    "epe": "EPE",
    "bad1": "> 1 px (%)",
    "d1_all": "D1-all (%)",
    "d1_bg": "D1-bg (%)",
    "out_noc": "Out-Noc (%)",
    "out_all": "Out-All (%)",
}
