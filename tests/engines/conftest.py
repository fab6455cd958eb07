"""Converting takes seconds, so the tests share what was converted."""

from __future__ import annotations

from typing import NamedTuple

import openvino
import pytest

from aanet.engines.graph import spec_of
from aanet.engines.openvino.conversion import to_openvino
from aanet.inference.spec import NetworkSpec
from aanet.models.network import StereoNetwork
from helpers.matching_network import matching_network


class Shared(NamedTuple):
    network: StereoNetwork
    model: openvino.Model
    spec: NetworkSpec


@pytest.fixture(scope="session")
def converted() -> Shared:
    """A network that matches, in both worlds."""
    network = matching_network(24)
    return Shared(network, to_openvino(network), spec_of(network))
