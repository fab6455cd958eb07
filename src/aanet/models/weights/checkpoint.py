"""Reading and writing checkpoints: bundled weights, files of this package and the authors' files.

The format of this package is safetensors. The metadata contains the arguments to build the network
(`architecture`), the normalization of its inputs (`normalization`), recommendations for inference (`hints`)
and facts about the training (`facts`), so that loading a file needs no options.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from aanet.errors import ReadError, UnsupportedError
from aanet.inference.hints import InferenceHints
from aanet.io.atomic import write_bytes
from aanet.io.files import read_bytes
from aanet.models import zoo
from aanet.models.network import IMAGENET_MEAN, IMAGENET_STD, Architecture, StereoNetwork
from aanet.models.weights import files, official
from aanet.version import __version__

FORMAT = "aanet-1"
MAX_MEMBERS = 100_000  # of the archive of a PyTorch checkpoint: one per tensor
MAX_DISPARITY = 65536  # limit for values in files, in pixels
NORMALIZATION = {"mean": list(IMAGENET_MEAN), "std": list(IMAGENET_STD)}


@dataclass
class Checkpoint:
    """Weights, the architecture that they belong to, and their metadata."""

    architecture: Architecture
    state: dict[str, Tensor]
    hints: InferenceHints = field(default_factory=InferenceHints)
    facts: dict[str, Any] = field(default_factory=dict)
    source: str = ""

    def network(self, training_heads: bool | None = None, max_disparity: int | None = None) -> StereoNetwork:
        """Build the network and load the weights strictly, in evaluation mode.

        Args:
            training_heads: False omits the heads that only training needs; None keeps those in the file.
            max_disparity: Another search range, if the weights do not fix it; None keeps that of the file.
        """
        own = self.architecture.max_disparity
        if max_disparity not in (None, own):
            if zoo.card(self.architecture.builder).fixed_range:
                raise UnsupportedError(
                    f"The weights in {self.source} were trained for disparities below {own} pixels, which "
                    f"cannot be changed to {max_disparity}; a scale of 0.5 doubles the range to {2 * own}."
                )
            architecture = replace(self.architecture, max_disparity=max_disparity)
            return replace(self, architecture=architecture).network(training_heads)
        wanted = self.architecture.training_heads if training_heads is None else training_heads
        if wanted and not self.architecture.training_heads:
            raise UnsupportedError(f"{self.source} has no training heads; load it without them.")
        with torch.device("meta"):  # avoids initializing weights that are replaced at once
            network = zoo.card(self.architecture.builder).build(self.architecture.max_disparity, wanted)
        zoo.set_regression(network, self.architecture.regression)
        state = self.state
        if self.architecture.training_heads and not wanted:
            heads = _head_keys(self.architecture)
            state = {key: value for key, value in state.items() if key not in heads}
        _check_state(network, state, self.source)
        network.load_state_dict(state, assign=True)
        return zoo.to_channels_last(network).eval()


def load(
    source: str | os.PathLike[str], training_heads: bool | None = None, max_disparity: int | None = None
) -> StereoNetwork:
    """Load a network in evaluation mode.

    Args:
        source: The name of bundled weights, a file of this package or a checkpoint of the authors.
        training_heads: False omits the heads that only training needs; None keeps those in the file.
        max_disparity: Another search range, if the weights do not fix it; None keeps that of the file.
    """
    return read(source).network(training_heads, max_disparity)


def read(source: str | os.PathLike[str]) -> Checkpoint:
    """Read bundled weights (`aanet`, `aanet:kitti15`), a file of this package or one of the authors."""
    path = files.find(source)
    try:
        with path.open("rb") as file:
            start = file.read(16)
            size = path.stat().st_size
    except OSError as error:
        raise ReadError(f"Cannot read {path}: {(error.strerror or str(error)).lower()}.") from error
    # A safetensors file starts with the length of its header, which may look like the start of a pickle.
    header = int.from_bytes(start[:8], "little")
    if start[8:9] == b"{" and header <= size - 8:
        return _read_safetensors(path)
    if start[:2] == b"PK" or start[:1] == b"\x80":
        return _read_pickle(path)
    if start[8:9] == b"{":
        return _read_safetensors(path)  # truncated; raises the error for a damaged file
    raise ReadError(f"{path} is neither a safetensors file nor a PyTorch checkpoint.")


def save(
    network: StereoNetwork,
    path: str | os.PathLike[str],
    facts: dict[str, Any] | None = None,
    hints: InferenceHints | None = None,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Write a network atomically in the format of this package.

    Args:
        network: The network.
        path: The file; an existing file is kept if writing fails.
        facts: Facts about the training, as JSON values.
        hints: Recommendations of the weights for inference.
        dtype: The type in which kernels are stored: float32, or float16 for half the size; loading converts
            them to float32. Biases and batch-norm statistics, which may exceed float16, keep their type.
    """
    state = {
        key: (value.to(dtype) if value.dim() > 1 else value).detach().cpu().contiguous()
        for key, value in network.state_dict().items()
    }
    write(Checkpoint(network.architecture, state, hints or InferenceHints(), facts or {}), path)


def write(checkpoint: Checkpoint, path: str | os.PathLike[str]) -> None:
    """Write a checkpoint atomically in the format of this package."""
    metadata = {
        "format": FORMAT,
        "architecture": json.dumps(asdict(checkpoint.architecture)),
        "normalization": json.dumps(NORMALIZATION),
        "hints": json.dumps(asdict(checkpoint.hints)),
        "facts": json.dumps(checkpoint.facts),
        "aanet_version": __version__,
    }
    write_bytes(path, safetensors.torch.save(checkpoint.state, metadata))


def _read_safetensors(path: Path) -> Checkpoint:
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            state = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - not a dictionary
        state = {key: value.float() if value.is_floating_point() else value for key, value in state.items()}
    except Exception as error:  # a damaged header can raise any exception
        reason = " ".join(str(error).split())[:200]
        raise ReadError(f"{path} is damaged or not a safetensors file ({reason}).") from error
    if metadata.get("format") != FORMAT:
        return _from_official(state, str(path))
    try:
        architecture = _architecture(json.loads(metadata["architecture"]), path)
        normalization = json.loads(metadata["normalization"])
        hints = dict(json.loads(metadata.get("hints", "{}")))
        facts = _facts(json.loads(metadata["facts"]))
    except ReadError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise ReadError(f"The metadata of {path} is incomplete or damaged.") from error
    if normalization != NORMALIZATION:
        raise ReadError(
            f"{path} expects images normalized with {str(normalization)[:100]}, which is not supported."
        )
    return Checkpoint(architecture, state, InferenceHints.from_dict(hints, str(path)), facts, str(path))


def _architecture(values: dict[str, Any], path: Path) -> Architecture:
    """Return the architecture in the metadata; a value of the wrong type raises a ValueError."""
    architecture = Architecture(**values)
    for name, value in asdict(architecture).items():
        if type(value) is not {"max_disparity": int, "training_heads": bool}.get(name, str):
            raise ValueError(name)
    if not 0 < architecture.max_disparity <= MAX_DISPARITY:
        raise ValueError(architecture.max_disparity)
    if architecture.builder not in zoo.NETWORKS:
        raise ReadError(f"{path} does not fit: there is no network {architecture.builder[:40]!r}.")
    return architecture


def _facts(values: dict[str, Any]) -> dict[str, Any]:
    """Return the facts in the metadata; scores must be numbers by model, dataset and metric."""
    for datasets in values.get("scores", {}).values():
        for metrics in datasets.values():
            for score in metrics.values():
                float(score)
    return values


def _read_pickle(path: Path) -> Checkpoint:
    data = read_bytes(path, "a PyTorch checkpoint")
    try:
        _refuse_bombs(data, path)
        content = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except ReadError:
        raise
    except pickle.UnpicklingError as error:
        raise ReadError(
            f"{path} contains objects other than weights, and loading it could execute code; it is refused."
        ) from error
    except Exception as error:  # a damaged pickle can raise any exception
        raise ReadError(f"{path} is truncated or not a PyTorch checkpoint.") from error
    return _from_official(_unwrap(content, path), str(path))


def _refuse_bombs(data: bytes, path: Path) -> None:
    """Raise an error if a small file could fill the memory."""
    if b"bytearray\n" in data:  # torch would create one of any size
        raise ReadError(f"{path} contains objects other than weights; it is refused.")
    if data.startswith(b"PK"):
        if data.count(b"PK\x01\x02") > MAX_MEMBERS:
            raise ReadError(f"{path} contains more than {MAX_MEMBERS} files; it is refused.")
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if any(part.compress_type != zipfile.ZIP_STORED for part in archive.infolist()):
                raise ReadError(f"{path} is compressed, which PyTorch checkpoints never are; it is refused.")


def _unwrap(content: Any, path: Path) -> dict[str, Tensor]:
    """Return the state dict of a checkpoint that may wrap it."""
    if isinstance(content, dict):
        for key in ("state_dict", "model"):
            if isinstance(content.get(key), dict):
                content = content[key]
                break
    if not isinstance(content, dict) or not content:
        raise ReadError(f"{path} contains no weights.")
    if not all(isinstance(value, Tensor) and _is_dense(value) for value in content.values()):
        raise ReadError(f"{path} contains values other than tensors in place of weights.")
    return {str(key): value for key, value in content.items()}


def _is_dense(value: Tensor) -> bool:
    return value.layout is torch.strided and value.device.type == "cpu" and not value.is_quantized


def _from_official(state: dict[str, Tensor], source: str) -> Checkpoint:
    state = {key.removeprefix("module."): value for key, value in state.items()}  # added by DataParallel
    try:
        layout = official.detect(state)
    except ReadError as error:
        raise ReadError(f"{source}: {error}") from error
    architecture = Architecture(layout.name, layout.max_disparity, layout.training_heads)
    renamed = {layout.keys[key]: value for key, value in state.items()}
    return Checkpoint(architecture, renamed, facts={"origin": "the authors of AANet"}, source=source)


def _head_keys(architecture: Architecture) -> set[str]:
    """Return the keys of the training heads."""
    with torch.device("meta"):
        builder = zoo.card(architecture.builder).build
        with_heads = builder(architecture.max_disparity, True).state_dict()
        without = builder(architecture.max_disparity, False).state_dict()
    return with_heads.keys() - without.keys()


def _check_state(network: StereoNetwork, state: dict[str, Tensor], source: str) -> None:
    own = network.state_dict()
    expected = {key: tuple(value.shape) for key, value in own.items()}
    found = {key: tuple(value.shape) for key, value in state.items()}
    differences = official.differences(expected, found)
    differences += [
        f"{key} has the type {state[key].dtype}"
        for key, value in own.items()
        if key in state and value.is_floating_point() and not state[key].is_floating_point()
    ]
    if not differences:
        differences = [f"{key} is not finite" for key in own if not torch.isfinite(state[key]).all()]
    if differences:
        raise ReadError(
            f"The weights in {source} do not fit {network.architecture.builder}: "
            f"{official.summary(differences)}."
        )
