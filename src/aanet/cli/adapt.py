"""`aanet adapt`: fine-tune weights on pairs without ground truth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aanet.cli.console import Percent, progress_bar, status, track
from aanet.cli.options import (
    ANY_MODEL,
    JsonOutput,
    Overwrite,
    Textures,
    Threads,
    refuse_existing,
)
from aanet.errors import InputError
from aanet.models.weights import files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aanet.io.images import AnyImage
    from aanet.io.pairs import Pairs
    from aanet.training.adaptation import FineTuning, LabelRule, PreparedPairs, Scores

DEFAULT_MINUTES = 10.0
LABELS = "Pseudo ground truth"
_SHOWN_WARNINGS = 5


def adapt(
    left: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER",
            help="Rectified pairs: a folder of both sides, a CSV file with the columns left and right, a "
            "video with both views side by side or a ROS recording; or, with RIGHT, the folder, pattern or "
            "video of the left side.",
        ),
    ],
    right: Annotated[
        str | None, typer.Argument(help="Folder, pattern or video of the right side.", show_default=False)
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Weight file to write if the adapted weights are better."
        ),
    ] = Path("adapted.safetensors"),
    model: Annotated[
        str, typer.Option(metavar="MODEL", help="Bundled weights or a weight file to start from.")
    ] = files.DEFAULT,
    minutes: Annotated[
        float | None,
        typer.Option(metavar="N", help="Time of the fine-tuning.", show_default=f"{DEFAULT_MINUTES:g}"),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Optimizer steps, instead of a time.",
            show_default="as many as fit the time",
        ),
    ] = None,
    hold_out: Annotated[
        float,
        typer.Option(
            metavar="SHARE", help="Share of the pairs that are left out of training, for the comparison."
        ),
    ] = 0.2,
    limit: Annotated[
        int, typer.Option(metavar="N", min=2, help="Maximum number of pairs, evenly spaced over all.")
    ] = 100,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help=f"What predicts the pseudo ground truth. {ANY_MODEL}",
            show_default="the model itself",
            rich_help_panel=LABELS,
        ),
    ] = None,
    max_difference: Annotated[
        float,
        typer.Option(
            metavar="PIXELS",
            help="Maximum disparity difference in the left-right consistency check.",
            rich_help_panel=LABELS,
        ),
    ] = 1.0,
    min_confidence: Annotated[
        float, typer.Option(metavar="0…1", help="Minimum confidence.", rich_help_panel=LABELS)
    ] = 0.9,
    textures: Textures = None,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="Random seed: which pairs are left out, and their order.")
    ] = 0,
    overwrite: Overwrite = False,
    as_json: JsonOutput = False,
    threads: Threads = None,
) -> None:
    """Adapt weights to a camera by a short fine-tuning on pairs without ground truth.

    The network predicts its own ground truth where left and right agree and its confidence is high. Half of
    the training is on these pairs, half on the procedural world, so that nothing is forgotten. The weights
    are written only if they are better on the pairs that were left out: left and right agree more often, and
    the photometric error is lower. Otherwise nothing is written, and the exit code is still 0.

    Example: aanet adapt recordings/ -o my-camera.safetensors
    """
    import os

    # Before torch is imported, as for `aanet train`: threads that wait in a busy loop slow down the others.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    _check(output, minutes, steps, hold_out, min_confidence, max_difference)
    refuse_existing(overwrite, output)

    from aanet.io.pairs import find_pairs
    from aanet.synthetic.library import find_photographs
    from aanet.training.adaptation import FineTuning, LabelRule, choose_held_out

    if textures is not None:
        find_photographs(textures)  # which the training would miss after the labels are predicted
    pairs = find_pairs(left, right)
    chosen = _choose(pairs, left, limit)
    held_out = choose_held_out(len(chosen), hold_out, seed, in_order=pairs.video is not None)
    duration = None if steps else minutes or DEFAULT_MINUTES
    task = Task(
        model=model,
        labels=labels or model,
        rule=LabelRule(max_difference, min_confidence),
        tuning=FineTuning(duration, steps, seed, textures, threads or 0),
        output=output,
    )
    _print(task.run(pairs, chosen, held_out), as_json)


def _check(
    output: Path,
    minutes: float | None,
    steps: int | None,
    hold_out: float,
    min_confidence: float,
    max_difference: float,
) -> None:
    """Raise an error about an option before anything is read."""
    if output.suffix != ".safetensors":
        raise InputError(f"The output must be a file with the suffix .safetensors; got {output}.")
    if minutes is not None and steps is not None:
        raise InputError("--minutes and --steps exclude each other.")
    if minutes is not None and not 0 < minutes <= 100_000:
        raise InputError(f"--minutes must be a positive number; got {minutes:g}.")
    if not 0 < hold_out < 1:
        raise InputError(f"--hold-out must be between 0 and 1; got {hold_out:g}.")
    if not 0 <= min_confidence <= 1:
        raise InputError(f"--min-confidence must be from 0 to 1; got {min_confidence:g}.")
    if not max_difference > 0:
        raise InputError(f"--max-difference must be positive; got {max_difference:g}.")


def _choose(pairs: Pairs, source: str, limit: int) -> list[int]:
    """The places of the pairs to use."""
    from aanet.evaluation.report import spread

    if getattr(pairs.video, "live", False):
        raise InputError(f"{source} is a live source, which never ends; record a video of it first.")
    total = pairs.total or sum(1 for _ in pairs)  # some videos do not state their length
    if total < 2:
        raise InputError(
            f"{source} has only one pair; at least two are needed, one to train on and one to leave out."
        )
    return spread(total, min(limit, total))


@dataclass(frozen=True)
class Task:
    """What to adapt, and how."""

    model: str
    labels: str
    rule: LabelRule
    tuning: FineTuning
    output: Path

    def run(self, pairs: Pairs, chosen: list[int], held_out: set[int]) -> dict[str, Any]:
        """Label, train, score and, if it is better, write; returns the report.

        Args:
            pairs: The pairs of the user.
            chosen: The places of those to use.
            held_out: Which of the chosen ones are left out of the training.
        """
        from aanet.io.atomic import temporary_folder
        from aanet.matcher import StereoMatcher
        from aanet.models.weights import checkpoint
        from aanet.training import adaptation

        weights = files.find(self.model)
        start = checkpoint.read(weights)
        before, hints, tuning = start.network(training_heads=False), start.hints, self.tuning
        labeler = StereoMatcher(self.labels, threads=tuning.threads or None)
        with temporary_folder(self.output.absolute().parent) as folder:
            loaded = track(_load(pairs, set(chosen)), "Predicting labels", len(chosen))
            prepared = adaptation.prepare_pairs(loaded, held_out, labeler, hints.scale_for, self.rule, folder)
            recipe = adaptation.adaptation_recipe(start, weights, prepared, tuning)
            with progress_bar("Fine-tuning (%)", 100) as advance:
                network, steps = adaptation.fine_tune(recipe, Percent(advance).reach)
            scored = adaptation.score_pairs(before, network, hints, prepared.held_out)
            compared = list(track(scored, "Comparing", prepared.held_out_pairs))
            with status("Scoring on the procedural world"):
                scores = adaptation.summarize(compared, before, network, hints, tuning)
        report = self._report(prepared, steps, scores)
        if pairs.unmatched:
            alone = f"{len(pairs.unmatched)} images have no partner, such as {pairs.unmatched[0]}."
            report["warnings"].insert(0, alone)
        if report["kept"]:
            facts = {
                "trained_on": "pairs without ground truth, synthetic",
                "start_from": Path(self.model).name,
                "recipe_digest": recipe.digest(),
                "steps": str(steps),
                "adaptation": report,
            }
            checkpoint.save(network, self.output, facts, hints)
        return report

    def _report(self, prepared: PreparedPairs, steps: int, scores: Scores) -> dict[str, Any]:
        return {
            "kept": not scores.shortcomings,
            "weights": None if scores.shortcomings else str(self.output),
            "reasons": scores.shortcomings,
            "model": self.model,
            "labels": self.labels,
            "training_pairs": prepared.training_pairs,
            "held_out_pairs": prepared.held_out_pairs,
            "labeled": prepared.labeled,
            "steps": steps,
            "scores": scores.as_dict(),
            "warnings": list(prepared.warnings),
        }


def _load(pairs: Pairs, chosen: set[int]) -> Iterator[tuple[str, AnyImage, AnyImage]]:
    for place, pair in enumerate(pairs):
        if place in chosen:
            yield (pair.name, *pair.load())


def _print(report: dict[str, Any], as_json: bool) -> None:
    import json
    import sys

    from rich.console import Console

    from aanet.cli.tables import new_table

    for warning in report["warnings"][:_SHOWN_WARNINGS]:
        print(f"warning: {warning}", file=sys.stderr)
    if as_json:
        print(json.dumps(report, indent=2))
        return
    print(
        f"{report['steps']} steps on {report['training_pairs']} pairs, {report['labeled']:.0%} of whose "
        "pixels were labeled, and on the procedural world\n"
    )
    scores = report["scores"]
    table = new_table([f"on {report['held_out_pairs']} pairs that were left out"], ["before", "after"])
    rows = {
        "agreement": ("left and right agree", 100, "{:.2f} %"),
        "photometric": ("photometric error", 1, "{:.4f}"),
        "procedural_epe": ("EPE on the procedural world", 1, "{:.2f} px"),
    }
    for key, (title, factor, form) in rows.items():
        table.add_row(title, *(form.format(factor * scores[key][when]) for when in ("before", "after")))
    Console().print(table)
    if report["kept"]:
        print(f"\nThe adapted weights are better. Wrote {report['weights']}; use it with --model.")
    else:
        why = ", and ".join(report["reasons"])
        print(
            f"\nThe adapted weights are not better: {why}. Nothing was written; go on with {report['model']}."
        )
