"""Compare a folder with the layout of a dataset, for `aanet data check`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from aanet.data.datasets import dataset_class, open_dataset
from aanet.data.datasets.card import DatasetCard
from aanet.data.layout import Group, companion, find, require_root
from aanet.errors import InputError


@dataclass(frozen=True)
class PartReport:
    """The files of one kind: how many exist, and which are missing for the left images that exist."""

    what: str
    pattern: str
    required: bool
    found: int
    missing: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class GroupReport:
    """The files found of a group. A group without any left image is absent, which is not an error."""

    title: str
    complete: int | None
    parts: list[PartReport]

    @property
    def pairs(self) -> int:
        """Number of left images."""
        return self.parts[0].found

    @property
    def incomplete(self) -> bool:
        """Whether a required file is missing."""
        return any(part.required and part.missing for part in self.parts)


@dataclass(frozen=True)
class LayoutReport:
    """The result of `aanet data check`."""

    card: DatasetCard
    root: str
    groups: list[GroupReport]
    splits: dict[str, int]  # the number of pairs that each split uses

    @property
    def usable(self) -> bool:
        """Whether there is at least one pair and no pair lacks a required file."""
        return any(group.pairs for group in self.groups) and not any(
            group.incomplete for group in self.groups
        )


def check_layout(name: str, root: Path) -> LayoutReport:
    """Compare a folder with the layout of a dataset."""
    card = dataset_class(name).CARD
    if root.suffix.lower() == ".csv" and root.is_file():
        raise InputError(f"Only folders have a layout; {root} is checked when it is read: aanet data stats.")
    require_root(card.reference, root, card.groups[0])
    splits = {split: len(open_dataset(name, root, split).find_pairs()) for split in card.splits}
    return LayoutReport(card, str(root), [_check_group(root, group) for group in card.groups], splits)


def _check_group(root: Path, group: Group) -> GroupReport:
    captures = [found for found, _ in find(root, group.left)]
    parts = []
    for what, pattern, required in group.parts():
        substitute = group.visible if group.visible_is_truth and pattern == group.disparity else None
        missing = [
            companion(root, pattern, found).relative_to(root).as_posix()
            for found in captures
            if not companion(root, pattern, found).is_file()
            and not (substitute and companion(root, substitute, found).is_file())
        ]
        parts.append(PartReport(what, pattern, required, len(captures) - len(missing), missing))
    return GroupReport(group.title, group.complete, parts)
