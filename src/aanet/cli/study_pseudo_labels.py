"""`aanet study pseudo-labels`: fine-tune on sparse truth with and without pseudo ground truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aanet.cli.console import Percent, progress_bar, track
from aanet.cli.options import ANY_MODEL, JsonOutput, Overwrite, Seed, Textures, Threads, refuse_existing
from aanet.models.weights import files

if TYPE_CHECKING:
    from aanet.training.pseudo_label_study import StudySize

_SHOWN = 3  # streets in the figure


def pseudo_labels(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The figure to write.")
    ] = Path("pseudo-labels.png"),
    model: Annotated[
        str, typer.Option(metavar="MODEL", help="Bundled weights or a weight file to fine-tune.")
    ] = files.DEFAULT,
    labels: Annotated[
        str, typer.Option(metavar="MODEL", help=f"What predicts the pseudo ground truth. {ANY_MODEL}")
    ] = "aanet",
    pairs: Annotated[int, typer.Option(metavar="N", min=1, help="Number of training pairs.")] = 30,
    steps: Annotated[
        int, typer.Option(metavar="N", min=1, help="Optimizer steps of each fine-tuning.")
    ] = 150,
    test_pairs: Annotated[
        int, typer.Option(metavar="N", min=1, help="Number of held-out pairs that are scored.")
    ] = 20,
    seed: Seed = 0,
    textures: Textures = None,
    overwrite: Overwrite = False,
    as_json: JsonOutput = False,
    threads: Threads = None,
) -> None:
    """Fine-tune on sparse truth with and without pseudo ground truth, as in the paper's figure.

    The pairs are procedural streets with truth only where a laser scanner would have it: on scan lines in the
    lower image, up to a distance. The network is fine-tuned twice on the same pairs with the same steps, and
    scored on held-out streets: in the sky, in the upper image, where there was no truth, and in the lower
    image. The figure shows streets whose difference is typical.

    Example: aanet study pseudo-labels -o pseudo-labels.png
    """
    import json
    import os

    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before torch is imported, as for `aanet train`
    refuse_existing(overwrite, output)

    from aanet.training.pseudo_label_study import StudySize

    size = StudySize(pairs, steps, test_pairs, seed, textures, threads or 0)
    report = _study(model, labels, size, output)
    if as_json:
        print(json.dumps(report, indent=2))
        return
    _print(report)
    print(f"Wrote {output}.")


def _study(model: str, labels: str, size: StudySize, output: Path) -> dict[str, Any]:
    """Write the pairs, train both variants, score them and draw the figure; returns the report."""
    from dataclasses import asdict

    from aanet.io.atomic import temporary_folder
    from aanet.io.images import write_image
    from aanet.matcher import StereoMatcher
    from aanet.models.weights import checkpoint
    from aanet.training import pseudo_label_study as study
    from aanet.training.adaptation import fine_tune

    weights = files.find(model)
    start = checkpoint.read(weights)
    networks = {"before": start.network(training_heads=False)}
    with temporary_folder(output.absolute().parent) as folder:
        written = study.write_pairs(
            study.streets(size), StereoMatcher(labels, threads=size.threads or None), folder
        )
        quality = study.mean_quality(list(track(written, "Predicting labels", size.pairs)))
        for variant in ("without", "with"):
            recipe = study.study_recipe(start, weights, folder, size, pseudo_labels=variant == "with")
            with progress_bar(f"Fine-tuning {variant} pseudo labels (%)", 100) as advance:
                networks[variant], _ = fine_tune(recipe, Percent(advance).reach)
    streets = study.predict_streets(networks, start.hints, study.streets(size, test=True))
    results = list(track(streets, "Scoring", size.test_pairs))
    write_image(output, study.figure(study.typical(results, _SHOWN)))
    return {
        "model": model,
        "labels": labels,
        "pairs": size.pairs,
        "steps": size.steps,
        "test_pairs": size.test_pairs,
        "seed": size.seed,
        "pseudo_ground_truth": asdict(quality),
        "errors": study.summarize(results),
        "figure": str(output),
    }


def _print(report: dict[str, Any]) -> None:
    from rich.console import Console

    from aanet.cli.tables import new_table
    from aanet.training.pseudo_label_study import REGIONS, TITLES

    quality = report["pseudo_ground_truth"]
    print(
        f"{report['model']}, {report['steps']} steps on {report['pairs']} streets; {quality['known']:.0f} % "
        f"of their pixels have truth, {quality['labeled']:.0f} % pseudo ground truth of {report['labels']}, "
        f"of which {quality['bad3']:.1f} % are wrong by more than 3 px\n"
    )
    headings = [f"{region} {metric}" for region in REGIONS for metric in ("EPE", "bad-3")]
    table = new_table([f"on {report['test_pairs']} held-out streets"], headings)
    for variant, regions in report["errors"].items():
        cells = [
            text
            for region in REGIONS
            for text in (f"{regions[region]['epe']:.2f}", f"{regions[region]['bad3']:.1f} %")
        ]
        table.add_row(TITLES[variant], *cells)
    Console().print(table)
