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
        """Return the smallest allowed length of at least `side` pixels."""
        return -(-max(side, self.minimum) // self.multiple) * self.multiple

    def check(self, height: int, width: int, subject: str) -> None:
        """Raise an error about `subject` unless images of this size are allowed."""
        if height % self.multiple or width % self.multiple or min(height, width) < self.minimum:
            raise AanetError(
                f"{subject} needs a height and width that are multiples of {self.multiple} and at least "
                f"{self.minimum}, but got {height}×{width}."
            )
