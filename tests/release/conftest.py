from __future__ import annotations

from pathlib import Path

import pytest

from helpers.wheel_environment import build_distributions


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the sdist of this tree."""
    return build_distributions(tmp_path_factory.mktemp("dist"))
