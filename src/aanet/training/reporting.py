"""Progress of a run: a live line or plain log lines, a JSON log, and TensorBoard."""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.live import Live
from rich.text import Text
from torch import Tensor

from aanet.io.atomic import write_bytes
from aanet.training.batches import StereoBatch
from aanet.viz import colorize_disparity

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

LOG = "log.jsonl"


@dataclass(frozen=True)
class Report:
    """The state of a run after a step."""

    stage: str
    step: int  # over all stages
    loss: float
    epe: float
    learning_rate: float
    pairs_per_second: float
    share: float  # completed part of the stage
    minutes: float  # trained in this stage
    minutes_left: float  # in this stage; NaN if unknown

    def line(self) -> str:
        """Format as one line."""
        left = "?" if math.isnan(self.minutes_left) else f"{self.minutes_left:.0f} min"
        return (
            f"{self.stage} {self.share:4.0%}  step {self.step}  loss {self.loss:.3f}  EPE {self.epe:.2f} px  "
            f"lr {self.learning_rate:.1e}  {self.pairs_per_second:.2f} pairs/s  {left} left in stage"
        )


class Averages:
    """Means over the steps since the last report."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.errors: list[float] = []
        self.pairs = 0
        self.seconds = 0.0

    def add(self, loss: float, epe: float, pairs: int, seconds: float) -> None:
        """Add a step."""
        self.losses.append(loss)
        if not math.isnan(epe):  # a crop without ground truth
            self.errors.append(epe)
        self.pairs += pairs
        self.seconds += seconds

    @property
    def loss(self) -> float:
        """Mean loss."""
        return fmean(self.losses)

    @property
    def epe(self) -> float:
        """Mean end-point error in pixels."""
        return fmean(self.errors) if self.errors else math.nan

    @property
    def pairs_per_second(self) -> float:
        """Pairs trained per second of wall time."""
        return self.pairs / max(self.seconds, 1e-9)


class Reporter:
    """Writes reports to the terminal, to `log.jsonl` and to TensorBoard; only the first process has one."""

    def __init__(self, folder: Path | None, console: Console) -> None:
        """Without a folder, nothing is written to disk."""
        self.folder = folder
        self.console = console
        # Not `console.is_terminal`, which is also True when color is forced.
        self.live = Live(console=console, auto_refresh=False) if console.file.isatty() else None
        self._writer: SummaryWriter | None = None
        self._first_step: int | None = None  # in TensorBoard; later steps of an earlier process are hidden

    def __enter__(self) -> Reporter:
        if self.live:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live:
            self.live.stop()
        if self._writer:
            with contextlib.suppress(
                OSError
            ):  # the curves may lack an end; a full disk is reported by others
                self._writer.close()

    def continue_after(self, step: int) -> None:
        """Remove what a process that was killed has logged after the step from which its run continues."""
        log = None if self.folder is None else self.folder / LOG
        if log is None or not log.is_file():
            return
        lines = log.read_bytes().splitlines(keepends=True)
        write_bytes(log, b"".join(line for line in lines if _step(line) <= step))
        self._first_step = step + 1

    def progress(self, report: Report) -> None:
        """Refresh the live line, if output goes to a terminal."""
        if self.live:
            self.live.update(Text(report.line(), overflow="ellipsis", no_wrap=True), refresh=True)

    def log(self, report: Report) -> None:
        """Log a report: a plain line if there is no live one, and a record in the files."""
        if not self.live:
            self.say(report.line())
        self._record({"kind": "training", **asdict(report)})
        if self.folder:
            for key in ("loss", "epe", "learning_rate", "pairs_per_second"):
                self._tensorboard().add_scalar(f"training/{key}", getattr(report, key), report.step)

    def validation(self, step: int, scores: dict[str, dict[str, float]]) -> None:
        """Log the scores of the validation sets."""
        for name, score in scores.items():
            text = "  ".join(f"{metric} {value:.3f}" for metric, value in score.items())
            self.say(f"validation after step {step}: {name}  {text}")
            if self.folder:
                for metric, value in score.items():
                    self._tensorboard().add_scalar(f"validation/{name}/{metric}", value, step)
        self._record({"kind": "validation", "step": step, "scores": scores})

    def picture(self, name: str, step: int, rgb: NDArray[np.uint8]) -> None:
        """Show an [H, W, 3] picture in TensorBoard."""
        if self.folder:
            self._tensorboard().add_image(name, rgb, step, dataformats="HWC")

    def say(self, message: str) -> None:
        """Print one line."""
        self.console.print(message, highlight=False, markup=False, soft_wrap=True)

    def _record(self, values: dict[str, Any]) -> None:
        if self.folder:
            with (self.folder / LOG).open("a", encoding="utf-8") as file:
                file.write(json.dumps(values) + "\n")

    def _tensorboard(self) -> SummaryWriter:
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter  # slow to import, and optional

            assert self.folder is not None
            self._writer = SummaryWriter(str(self.folder / "tensorboard"), purge_step=self._first_step)
        return self._writer


def _step(line: bytes) -> float:
    """Return the step of a record of the log; infinite for a line that was not written completely."""
    try:
        return int(json.loads(line)["step"]) if line.endswith(b"\n") else math.inf
    except (ValueError, KeyError, TypeError):
        return math.inf


def training_picture(batch: StereoBatch, disparity: Tensor, max_disparity: int) -> NDArray[np.uint8]:
    """Left view, right view, ground truth and prediction of the first pair of a batch, side by side."""
    truth = batch.truth.disparity[0].numpy()
    top = float(min(max(truth.max(), 1.0), max_disparity))
    maps = [colorize_disparity(each, 0, top) for each in (truth, disparity[0].numpy())]
    images = [image[0].permute(1, 2, 0).numpy() for image in (batch.left, batch.right)]
    return np.concatenate([*images, *maps], axis=1)
