"""A tiny dataset on disk and recipes that train on it in seconds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from aanet.io.disparity import write_disparity
from aanet.io.images import write_image
from aanet.training.recipe import Recipe, load_recipe
from aanet.typing import Image

HEIGHT, WIDTH = 56, 112


def draw_texture(rng: np.random.Generator, height: int, width: int) -> Image:
    """Smooth random colors: something to match everywhere."""
    noise = cv2.GaussianBlur(rng.random((height, width, 3)).astype(np.float32), (0, 0), 1.0)
    low, high = noise.min(), noise.max()
    return np.asarray((noise - low) / (high - low) * 255, np.uint8)


@pytest.fixture(scope="session")
def texture() -> Callable[[np.random.Generator, int, int], Image]:
    """Draw a texture of a height and width."""
    return draw_texture


@pytest.fixture(scope="session")
def pairs_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five pairs of fronto-parallel textures, 2 to 6 pixels apart, in the layout of one's own folder."""
    root = tmp_path_factory.mktemp("pairs")
    rng = np.random.default_rng(0)
    for number in range(5):
        disparity = number + 2
        wall = draw_texture(rng, HEIGHT, WIDTH + disparity)
        write_image(root / f"left/{number}.png", np.ascontiguousarray(wall[:, :WIDTH]))
        write_image(root / f"right/{number}.png", np.ascontiguousarray(wall[:, disparity:]))
        write_disparity(root / f"disparity/{number}.pfm", np.full((HEIGHT, WIDTH), disparity, np.float32))
    return root


@pytest.fixture(scope="session")
def recipe_text(pairs_folder: Path) -> Callable[[str], str]:
    """A recipe of StereoNet-AA on the pairs with the given `[[stage]]` tables, in TOML."""
    return lambda stages: (
        f"""
        [network]
        name = "stereonet_aa"
        max_disparity = 24
        initialization = "matching"
        [[data]]
        name = "folder"
        root = "{pairs_folder}"
        [run]
        accelerator = "cpu"
        workers = 0
        log_steps = 1
        {stages}
        """
    )


@pytest.fixture
def make_recipe(recipe_text: Callable[[str], str], tmp_path: Path) -> Callable[..., Recipe]:
    """A recipe on the pairs, loaded: the given `[[stage]]` tables and overrides."""

    def make(stages: str, *overrides: str) -> Recipe:
        path = tmp_path / "tiny.toml"
        path.write_text(recipe_text(stages))
        return load_recipe(path, list(overrides))

    return make
