"""`aanet demo`: predict a real pair and score the result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aanet.cli.console import status
from aanet.cli.options import JsonOutput

if TYPE_CHECKING:
    from aanet.data.sample import StereoSample
    from aanet.result import StereoResult
    from aanet.typing import Image


def demo(
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Folder for the results; those of an earlier demo are replaced.",
        ),
    ] = Path("out/demo"),
    as_json: JsonOutput = False,
) -> None:
    """Match the Motorcycle pair of Middlebury 2014 and score the result.

    All bundled models and the classical matchers are compared with the ground truth. The folder then
    contains the pair, its calibration, an image of the comparison, and the disparity, depth and point cloud
    of the default model.

    Example: aanet demo -o out/demo
    """
    from aanet.data.motorcycle import motorcycle, sample_pair
    from aanet.engines.classical import CLASSICAL
    from aanet.io.images import write_image
    from aanet.matcher import StereoMatcher
    from aanet.models.weights.files import bundled_names

    left, right, calibration = sample_pair()
    truth = motorcycle()
    names = [*CLASSICAL, *reversed(bundled_names())]  # the default last
    results = {}
    with status("Matching") as shown:
        for name in names:
            shown.update(f"Matching with {name}; the first time, a network is converted")
            results[name] = StereoMatcher(name)(left, right, calibration=calibration)
    scores = {name: _score(result, truth) for name, result in results.items()}
    best = names[-1]
    files = [output / "left.png", output / "right.png", output / "calib.json", output / "panel.png"]
    write_image(files[0], left)
    write_image(files[1], right)
    calibration.camera.save(files[2])
    write_image(files[3], _panel(truth, results, scores))
    files += results[best].save(output, "disparity", "color", "depth", "ply", name="motorcycle")
    if as_json:
        typer.echo(json.dumps({"scores": scores, "files": [str(file) for file in files]}, indent=2))
        return
    typer.echo("Motorcycle (500×741), all pixels with ground truth:")
    for name, score in scores.items():
        typer.echo(
            f"  {name:13s} EPE {score['epe']:.2f} px   bad-2 {score['bad2']:.1f} %   {score['seconds']:.2f} s"
        )
    if best in CLASSICAL:
        typer.echo("This version has no bundled weights; train a network with `aanet train`.")
    typer.echo(f"Wrote {', '.join(file.name for file in files)} to {output}.")


def _score(result: StereoResult, sample: StereoSample) -> dict[str, float]:
    import numpy as np

    from aanet.evaluation.metrics import error_sums

    assert sample.disparity is not None
    assert sample.valid is not None
    sums = error_sums(result.disparity, sample.disparity, sample.valid, np.isfinite(result.disparity))
    return {"epe": sums.epe, "bad2": sums.bad(2.0), "seconds": result.seconds}


def _panel(
    sample: StereoSample, results: dict[str, StereoResult], scores: dict[str, dict[str, Any]]
) -> Image:
    """Left image and ground truth; disparity and error of each matcher; points and depth of the last one."""
    import numpy as np

    from aanet import viz

    assert sample.disparity is not None
    assert sample.valid is not None
    truth = np.where(sample.valid, sample.disparity, np.nan).astype(np.float32)
    low, high = viz.value_range(truth)
    pictures = [sample.left, viz.colorize_disparity(truth, low, high)]
    titles = ["left image", "ground truth"]
    for name, result in results.items():
        pictures.append(viz.colorize_disparity(result.disparity, low, high))
        titles.append(f"{name}: disparity, EPE {scores[name]['epe']:.2f} px")
        pictures.append(viz.colorize_error(result.disparity, truth, sample.valid))
        titles.append(f"{name}: error, {scores[name]['bad2']:.1f} % above 2 px (blue: small, red: large)")
    best = list(results)[-1]
    height, width = sample.left.shape[:2]
    pictures.append(viz.render_points(results[best].points(), sample.left, width, height))
    titles.append(f"{best}: point cloud")
    pictures.append(viz.colorize_depth(results[best].depth()))
    titles.append(f"{best}: depth")
    return viz.panel(pictures, titles)
