"""From the options of a command to an open matcher and the options of its matches, for all commands alike."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aanet.engines.table import ENGINES, exported_suffixes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aanet.evaluation.origin import MatcherOrigin
    from aanet.inference.options import MatchOptions
    from aanet.matcher import StereoMatcher


@dataclass(frozen=True)
class MatcherOptions:
    """The options that open a matcher; `StereoMatcher` describes them."""

    engine: str | None = None
    precision: str = "auto"
    max_disparity: int | None = None
    device: str | None = None
    threads: int | None = None
    network_spec: str | None = None

    def open(self, model: str | None) -> StereoMatcher:
        """Open a matcher; options that its model does not have are refused."""
        from aanet.matcher import StereoMatcher

        return StereoMatcher(**self.arguments(model), threads=self.threads)

    def arguments(self, model: str | None) -> dict[str, Any]:
        """The arguments of `StereoMatcher` but for the threads, of which workers of a cluster have others."""
        options = asdict(self)
        del options["threads"]
        return {"model": model, **options}

    def among(self, models: list[str], model: str) -> MatcherOptions:
        """Return the options that apply to one of several models.

        Beside networks, classical matchers and files with an engine of their own run as they can; reports say
        how. A network spec is for the files of other programs. Alone, a model refuses what does not apply.
        """
        if len(models) == 1:
            return self
        from aanet.engines.classical import CLASSICAL
        from aanet.engines.foreign.files import is_foreign

        path, own = Path(model), exported_suffixes().get(Path(model).suffix)
        options = self if is_foreign(path) else replace(self, network_spec=None)
        if own is None and model not in CLASSICAL and not is_foreign(path):
            return options
        bf16 = own is not None and ENGINES[own].reads[path.suffix].bf16
        return replace(
            options,
            engine=None,
            device=None,
            precision="auto" if self.precision == "bf16" and not bf16 else self.precision,
            max_disparity=self.max_disparity if model in CLASSICAL else None,
        )


@dataclass(frozen=True)
class Models:
    """The models of a command.

    Attributes:
        sources: What each is opened from, by its name in tables and reports.
        opening: How they are opened.
        matching: The options of their matches.
    """

    sources: Mapping[str, str]
    opening: MatcherOptions
    matching: MatchOptions

    def open(self, name: str) -> tuple[StereoMatcher, MatcherOrigin]:
        """Open a model, and describe how its disparities are obtained."""
        from aanet.evaluation.origin import MatcherOrigin

        source = self.sources[name]
        matcher = self.opening.among(list(self.sources.values()), source).open(source)
        return matcher, MatcherOrigin.of(matcher, source, self.matching, self.opening.threads)


def match_options(
    scale: float | None,
    tile: str = "auto",
    postprocess: str = "auto",
    check: bool = False,
    strict: bool = False,
    inspect: bool = True,
) -> MatchOptions:
    """Return the options of a match; a wrong value is refused here, before anything is opened."""
    from aanet.inference.options import MatchOptions

    return MatchOptions.of(
        None,
        {
            "scale": "auto" if scale is None else scale,
            "tile": tile,
            "postprocess": postprocess,
            "check": check,
            "strict": strict,
            "inspect": inspect,
        },
    )
