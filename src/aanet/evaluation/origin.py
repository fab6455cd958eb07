"""Where the disparities of a model come from: enough to compute them again."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import cv2

from aanet.engines.classical import CLASSICAL
from aanet.engines.factory import find_source
from aanet.engines.foreign.spec import ForeignSpec
from aanet.engines.processor import this_processor
from aanet.engines.table import ENGINES
from aanet.evaluation.naming import is_file_name
from aanet.inference.hints import MAX_UPSCALE
from aanet.inference.options import MatchOptions
from aanet.inference.processing import Processing
from aanet.inference.spec import NetworkSpec
from aanet.io.files import read_bytes
from aanet.matcher import StereoMatcher
from aanet.version import __version__

_BINARY = {".xml": ".bin"}  # files whose weights are beside them
_SHOWN = 3  # different scales and tiles that a line names


class Origin(Protocol):
    """Describes how the disparities of one model were obtained."""

    def lines(self, model: str, done: Sequence[Processing]) -> list[tuple[str, str]]:
        """Return (aspect, words) for reports; `done` is what was done to each pair."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""


@dataclass(frozen=True)
class MatcherOrigin:
    """A matcher: the network, its engine, and the options it was called with.

    Attributes:
        source: The file or name that the matcher was opened from.
        weights: "sha256:" and the digest of the file; None without one.
        spec: The network.
        engine: The engine that was used, with its precision and device.
        options: The options of the matches, as requested.
        versions: Of this package and of the libraries that computed something.
        machine: The processor, and the number of threads.
        foreign: How a network of another program is fed and read; None for our own.
    """

    source: str
    weights: str | None
    spec: NetworkSpec
    engine: str
    options: MatchOptions
    versions: dict[str, str]
    machine: str
    foreign: ForeignSpec | None = None

    @classmethod
    def of(
        cls, matcher: StereoMatcher, source: str, options: MatchOptions, threads: int | None = None
    ) -> MatcherOrigin:
        """Describe an open matcher.

        Args:
            matcher: The matcher.
            source: The file or name that it was opened from.
            options: The options that it is called with.
            threads: The number of threads that was requested.
        """
        engine = matcher.engine
        foreign = getattr(engine, "foreign", None)  # its class would import OpenVINO
        return cls(
            source=source,
            weights=digest_of(source),
            spec=matcher.spec,
            engine=engine.description,
            options=options,
            versions=versions_of(engine.name),
            machine=f"{thread_count(threads)} threads of {this_processor().name}",
            foreign=foreign if isinstance(foreign, ForeignSpec) else None,
        )

    def lines(self, model: str, done: Sequence[Processing]) -> list[tuple[str, str]]:
        """See `Origin`."""
        images = "; ".join([_resizing(self, done), *self.around(done)])
        return [*self.identity(model), (f"{model}, images", images)]

    def identity(self, model: str) -> list[tuple[str, str]]:
        """Return what computed the disparities: the file, the engine and the versions."""
        source = [] if self.source in (model, self.spec.name) else [self.source]
        network = [self.spec.name] if source or self.spec.name != model else []
        weights = [] if self.weights is None else [self.weights]
        reach = f"disparities below {self.spec.max_disparity} px"
        described = ", ".join([*source, *network, *weights, reach])
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        lines = [(model, described), (f"{model}, computed by", f"{self.engine}; {self.machine}; {versions}")]
        return lines if self.foreign is None else [*lines, (f"{model}, spec", _spec_in_words(self.foreign))]

    def around(self, done: Sequence[Processing]) -> list[str]:
        """Return what was done before and after the network, apart from resizing."""
        multiple = self.spec.sizes.multiple
        tiles = _count(
            ["the whole image at once" if each.tile is None else f"{_size(each.tile)} tiles" for each in done]
        )
        words = [f"padded to multiples of {multiple} px" if multiple > 1 else "not padded"]
        words.append(f"--tile {_tile(self.options)}" + (f": {tiles}" if done else ""))
        words.append(f"--postprocess {self.options.postprocess}" + (f": {_steps(done[0])}" if done else ""))
        return words

    def as_dict(self) -> dict[str, Any]:
        """See `Origin`."""
        return {
            "source": self.source,
            "weights": self.weights,
            "network": self.spec.name,
            "max_disparity": self.spec.max_disparity,
            "engine": self.engine,
            "machine": self.machine,
            "versions": self.versions,
            "scale": self.options.scale,
            "upscale_to": self.spec.hints.upscale_to if self.options.scale == "auto" else 0,
            "size_multiple": self.spec.sizes.multiple,
            "network_spec": None if self.foreign is None else self.foreign.to_table(),
            "tile": self.options.tile,
            "postprocess": self.options.postprocess,
        }


def _spec_in_words(spec: ForeignSpec) -> str:
    """How a network of another program is fed and read."""
    image, output, fixed = spec.image, spec.output, spec.size.fixed
    words = [f"{image.color} images in {image.range[0]:g} … {image.range[1]:g}, {image.layout}"]
    words += ["normalized by mean and deviation"] if image.mean or image.std else []
    words += [f"resized to {_size(fixed)}"] if fixed else []
    words += [f"{output.sign} disparities in units of a {output.unit}, times {output.scale:g}"]
    words += [f"at {output.resolution:g} of the size"] if output.resolution != 1 else []
    return ", ".join([*words, *([f"license {spec.license}"] if spec.license else [])])


def _resizing(origin: MatcherOrigin, done: Sequence[Processing]) -> str:
    """The rule by which the images were resized, and the factors that were used."""
    scale, width = origin.options.scale, origin.spec.hints.upscale_to
    words = f"--scale {scale if scale == 'auto' else f'{scale:g}'}"
    if scale == "auto" and width:
        words += f": images narrower than {width} px are enlarged to it, at most {MAX_UPSCALE:g} times"
    used = _count(["not resized" if each.scale == 1 else f"resized by {each.scale:.4g}" for each in done])
    return f"{words} ({used})" if done else words


def _steps(done: Processing) -> str:
    """What was done after the network; it is the same for all pairs."""
    steps = []
    steps += ["edges sharpened"] if done.sharpen_edges else []
    steps += ["left border filled"] if done.fill_border else []
    return ", ".join(steps) or "the raw prediction"


def _tile(options: MatchOptions) -> str:
    tile = options.parsed_tile()
    return "none" if tile is None else tile if isinstance(tile, str) else _size(tile)


def _size(size: tuple[int, int]) -> str:
    return f"{size[0]}×{size[1]}"


def _count(words: Sequence[str]) -> str:
    """Name the most frequent values, with their numbers if they differ."""
    found = Counter(words).most_common()
    if len(found) == 1:
        return found[0][0]
    named = [f"{word} ({number})" for word, number in found[:_SHOWN]]
    return ", ".join([*named, *([f"{len(found) - _SHOWN} others"] if len(found) > _SHOWN else [])])


def digest_of(source: str) -> str | None:
    """Return "sha256:" and the digest of the file that a model is opened from; None if it has none."""
    if source in CLASSICAL:
        return None
    path = Path(source) if is_file_name(source) else find_source(source, None, None)
    if not isinstance(path, Path):
        return None
    digest = hashlib.sha256(read_bytes(path, "a network"))
    beside = path.with_suffix(_BINARY.get(path.suffix, path.suffix))
    if beside != path and beside.is_file():
        digest.update(read_bytes(beside, "weights"))
    return f"sha256:{digest.hexdigest()}"


def versions_of(engine: str, opencv: bool = True) -> dict[str, str]:
    """Return the versions of this package, of the library of an engine, and of OpenCV, which resizes."""
    versions = {"aanet": __version__}
    if engine in ENGINES:
        package = ENGINES[engine].package
        versions[package] = importlib.metadata.version(package)
    return {**versions, "opencv": cv2.__version__} if opencv else versions


def thread_count(requested: int | None) -> int:
    """Return the number of CPU threads that engines use: the requested one, or by the environment."""
    stated = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return requested or (int(stated) if stated.isdigit() else 0) or os.cpu_count() or 1
