"""Which image sizes a network takes."""

from __future__ import annotations

from dataclasses import dataclass

from aanet.errors import AanetError


@dataclass(frozen=True)
class SizeRule:
    """Height and width must be multiples of `multiple` and at least `minimum`."""

    multiple: int = 1
    minimum: int = 1

    def round_up(self, side: int) -> int:
        """Return the smallest allowed side that holds `side` pixels."""
        return -(-max(side, self.minimum) // self.multiple) * self.multiple

    def check(self, height: int, width: int, subject: str) -> None:
        """Raise an error that names `subject` unless an image of this size is allowed."""
        if height % self.multiple or width % self.multiple or min(height, width) < self.minimum:
            raise AanetError(
                f"{subject} needs a height and width that are multiples of {self.multiple} and at least "
                f"{self.minimum}, but got {height}×{width}."
            )
