"""What computes a disparity: one small protocol, and three behind it."""

from aanet.engines.factory import open_engine
from aanet.inference.spec import Engine, EngineUnavailableError, NetworkFacts

__all__ = ["Engine", "EngineUnavailableError", "NetworkFacts", "open_engine"]
