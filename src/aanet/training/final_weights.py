"""The weight files at the end of a run, and what they say about their training."""

from __future__ import annotations

from pathlib import Path

from aanet.inference.hints import InferenceHints
from aanet.models.network import StereoNetwork
from aanet.models.weights import checkpoint
from aanet.training.recipe import Recipe
from aanet.training.transfer import without_training_heads


def write_final_weights(
    folder: Path, network: StereoNetwork, hints: InferenceHints, recipe: Recipe, steps: int
) -> Path:
    """Write the weights for inference, and those with training heads for further training.

    Returns:
        The file of weights for inference.
    """
    path = folder / "weights.safetensors"
    facts = {
        "trained_on": ", ".join(dict.fromkeys(each.name for each in recipe.data)),
        "start_from": Path(recipe.network.start_from).name or "random weights",
        "recipe_digest": recipe.digest(),
        "steps": str(steps),
    }
    checkpoint.save(without_training_heads(network, network.state_dict()), path, facts, hints)
    checkpoint.save(network, folder / "weights-with-heads.safetensors", facts, hints)
    return path
