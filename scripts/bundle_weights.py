"""Put the weights of a training run into the package, with a model card.

    python scripts/bundle_weights.py RUN … --hours 2.2 --middlebury FOLDER --kitti FOLDER

RUN is an output folder of `aanet train`; the weights of several runs are averaged. The bundled float16 file
and SGBM are evaluated on real pairs that were not used for training. The scores are written to the metadata
of the file and to the card, `src/aanet/models/weights/bundled/NAME.md`. Afterwards,
`scripts/zero_shot_scores.py` scores the new file among published networks, and `scripts/readme_tables.py`
updates the README and the documentation.
"""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch

from aanet.data.datasets import open_dataset
from aanet.data.motorcycle import motorcycle
from aanet.data.sample import StereoSample
from aanet.evaluation import markdown
from aanet.evaluation.metrics import error_sums
from aanet.evaluation.regions import near_edges
from aanet.inference.hints import MAX_UPSCALE, InferenceHints
from aanet.inference.options import Postprocess, Scale
from aanet.io.atomic import atomic_path
from aanet.matcher import StereoMatcher
from aanet.models import zoo
from aanet.models.network import StereoNetwork
from aanet.models.weights import checkpoint
from aanet.models.weights.files import BUNDLED

SETS = {
    "motorcycle": "Motorcycle, Middlebury 2014 (500×741)",
    "middlebury": "Middlebury 2005 and 2006, third size",
    "middlebury_old": "Middlebury 2001 and 2003",
    "kitti2015": "KITTI 2015, 13 training pairs",
}
METRICS = {"epe": "EPE", "bad2": "bad-2", "d1": "D1", "edge_epe": "EPE at edges"}
EDGE_WIDTH = 7  # within 3 px of a disparity edge
ALONE = "network alone"  # the key of the scores without upscaling and post-processing
DENSE = 0.5  # share of pixels with ground truth above which it is dense; LiDAR covers a fifth
Scores = dict[str, dict[str, float]]


def main() -> None:
    """Write the file, evaluate it, and write it again with its scores and the card."""
    arguments = parse()
    sources = [checkpoint.read(run / "weights-with-heads.safetensors") for run in arguments.runs]
    network = averaged(sources)  # with training heads, so that training can continue from it
    hints = InferenceHints(arguments.upscale_to, arguments.sharpen_edges, arguments.fill_border)
    name = network.architecture.builder
    facts = {
        "trained_on": "the procedural stereo world of aanet.synthetic, textured with photographs; "
        "no real stereo pair",
        "hours": arguments.hours,
        "hardware": arguments.hardware,
        "recipe": arguments.recipe,
        "recipe_digest": ", ".join(source.facts["recipe_digest"] for source in sources),
        "steps": ", ".join(source.facts["steps"] for source in sources),
        "released": date.today().isoformat(),
        "license": "Apache-2.0",
    }
    target = BUNDLED / f"{name}.safetensors"
    target.parent.mkdir(exist_ok=True)
    checkpoint.save(network, target, facts, hints, torch.float16)
    matcher = StereoMatcher(name, precision="float32")
    facts["scores"] = {
        name: score(matcher, arguments),
        ALONE: score(matcher, arguments, scale=1.0, postprocess="none"),
        "sgbm": score(StereoMatcher("sgbm"), arguments),
    }
    checkpoint.save(network, target, facts, hints, torch.float16)
    with atomic_path(target.with_suffix(".md")) as temporary:
        temporary.write_text(card(network, hints, facts, target.stat().st_size), encoding="utf-8")
    print(json.dumps(facts["scores"], indent=2))


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "runs", type=Path, nargs="+", help="folders of training runs; weights of several are averaged"
    )
    parser.add_argument("--hours", type=float, required=True, help="total training time")
    parser.add_argument("--hardware", default="two CPU cores")
    parser.add_argument("--recipe", default="synthetic-cpu", help="name of the recipe")
    parser.add_argument(
        "--upscale-to", type=int, default=0, help="width to which smaller images are upscaled"
    )
    parser.add_argument("--sharpen-edges", action="store_true", help="recommend sharpening blurred edges")
    parser.add_argument(
        "--fill-border", action="store_true", help="recommend extrapolation at the left border"
    )
    parser.add_argument("--middlebury", type=Path, required=True)
    parser.add_argument("--kitti", type=Path, required=True)
    arguments = parser.parse_args()
    for folder in (arguments.middlebury, arguments.kitti):
        if not folder.is_dir():  # would be noticed only after the bundled file was replaced
            parser.error(f"there is no folder {folder}")
    return arguments


def averaged(sources: list[checkpoint.Checkpoint]) -> StereoNetwork:
    """Average the weights of several checkpoints, which is often better than the last one."""
    network = sources[-1].network()
    mean = {
        key: torch.stack([source.state[key] for source in sources]).mean(dim=0)
        if value.is_floating_point()
        else value
        for key, value in sources[-1].state.items()
    }
    network.load_state_dict(mean)
    return network


def score(
    matcher: StereoMatcher,
    arguments: argparse.Namespace,
    scale: Scale = "auto",
    postprocess: Postprocess = "auto",
) -> Scores:
    """Compute all metrics of all sets, averaged over images."""
    sets: dict[str, Callable[[], Iterable[StereoSample]]] = {
        "motorcycle": lambda: [motorcycle()],
        "middlebury": lambda: pairs("middlebury2006", arguments.middlebury, ("2005-", "2006-")),
        "middlebury_old": lambda: pairs("middlebury2006", arguments.middlebury, ("2001-", "2003-")),
        "kitti2015": lambda: pairs("kitti2015", arguments.kitti, ("",), split="all"),
    }
    scores: Scores = {}
    for name, samples in sets.items():
        each = [score_pair(matcher, sample, scale, postprocess) for sample in samples()]
        known = [metric for metric in METRICS if all(metric in s for s in each)]
        scores[name] = {metric: round(fmean(s[metric] for s in each), 3) for metric in known}
    return scores


def pairs(dataset: str, root: Path, prefixes: tuple[str, ...], **options: Any) -> Iterator[StereoSample]:
    """Yield the pairs of a dataset whose scene begins with one of the prefixes."""
    for sample in open_dataset(dataset, root, **options):
        if sample.name.split()[-1].startswith(prefixes):
            yield sample


def score_pair(
    matcher: StereoMatcher, sample: StereoSample, scale: Scale = "auto", postprocess: Postprocess = "auto"
) -> dict[str, float]:
    """Compute the metrics of one pair; those at edges need dense ground truth."""
    truth, valid = sample.disparity, sample.valid
    assert truth is not None
    assert valid is not None
    result = matcher(sample.left, sample.right, scale=scale, postprocess=postprocess, inspect=False)
    disparity, given = result.disparity, np.ones_like(valid)
    everywhere = error_sums(disparity, truth, valid, given)
    scores = {"epe": everywhere.epe, "bad2": everywhere.bad(2.0), "d1": everywhere.d1}
    edges = valid & near_edges(truth, valid, EDGE_WIDTH)
    if valid.mean() > DENSE and edges.any():
        scores["edge_epe"] = error_sums(disparity, truth, edges, given).epe
    return scores


CARD = """\
# {title}: bundled weights

{megabytes:.1f} MB (float16), for disparities below 192 pixels. {network}

- **Training data**: {trained_on}.
- **Training**: {hours:g} hours on {hardware} with the recipe `{recipe}`, as described in \
docs/notes; {parts} `{recipe_digest}`.
- **Model selection**: the real pairs below were evaluated between parts of the training, to decide how to \
continue and which settings to recommend.
- **Released**: {released} under {license}.

The table shows the errors of the float16 file and of SGBM (`StereoMatcher("sgbm")`) on real pairs that were \
not used for training, over all pixels with ground truth and averaged over images. Errors are in pixels, \
bad-2 and D1 in percent. Edges are pixels within 3 pixels of a disparity jump. Bold figures are better than \
SGBM. "network alone" is without upscaling and post-processing (`scale=1, postprocess="none"`), which is \
faster for small images.

{table}

## Limits

- {verdict}
- The weights were not trained on pairs of a real stereo camera; networks trained on Scene Flow and KITTI \
for days on a GPU are expected to be more accurate.
- Disparities of 192 pixels and more are out of range; `--scale 0.5` doubles the range.
- Pairs must be rectified to within half a pixel.
- Predictions are unreliable on mirrors, glass and large textureless areas.
"""


REGRESSIONS = {
    "soft_argmin": "Disparities are regressed with soft argmin, as in the paper.",
    "peak": "The architecture is the paper's, but disparities are regressed from the highest peak (`peak`).",
}


def card(network: StereoNetwork, hints: InferenceHints, facts: dict[str, Any], size: int) -> str:
    """Return the model card."""
    name, title = network.architecture.builder, zoo.card(network.architecture.builder).title
    ours, plain, sgbm = (facts["scores"][key] for key in (name, ALONE, "sgbm"))
    rows = []
    for key, label in SETS.items():
        for metric, best in sgbm[key].items():
            cells = [
                f"**{v:.2f}**" if v < best else f"{v:.2f}" for v in (ours[key][metric], plain[key][metric])
            ]
            rows.append([label, METRICS[metric], *cells, f"{best:.2f}"])
    worse = sum(ours[key][metric] >= sgbm[key][metric] for key in SETS for metric in ours[key])
    verdict = "The weights are better than SGBM in every figure above."
    if worse:
        verdict = f"The weights are worse than SGBM in {worse} of the {len(rows)} figures above."
    about = REGRESSIONS[network.architecture.regression]
    if not zoo.card(name).in_paper:
        about = (
            "The network is not in the paper. Its features (EfficientNet-Lite0) were pretrained on ImageNet."
        )
    if hints.upscale_to:
        about += (
            f" Images narrower than {hints.upscale_to} pixels are upscaled to that width before "
            f"matching, at most {MAX_UPSCALE:g} times."
        )
    if hints.sharpen_edges:
        about += " Blurred edges are sharpened."
    if hints.fill_border:
        about += " Disparities are extrapolated at the left border, which the right camera does not see."
    table = markdown.table(["set", "metric", title, ALONE, "SGBM"], rows)
    several = "," in facts["recipe_digest"]
    parts = (
        "the weights are averaged over the ends of the parts with the recipe digests"
        if several
        else "recipe digest of the last part"
    )
    words = {"parts": parts, "title": title, "verdict": verdict, "network": about, "table": "\n".join(table)}
    return wrapped(CARD.format(megabytes=size / 1e6, **words, **facts))


def wrapped(text: str) -> str:
    """Wrap lines at 110 characters, except those of tables."""
    lines: list[str] = []
    for line in text.splitlines():
        indent = "  " if line.startswith("- ") else ""
        options = {"subsequent_indent": indent, "break_long_words": False, "break_on_hyphens": False}
        lines += [line] if line.startswith("|") or not line else textwrap.wrap(line, 110, **options)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
