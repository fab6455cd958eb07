"""What computes a disparity: one small protocol, and three behind it."""

from aanet.engines.engine import Engine, EngineUnavailableError, NetworkFacts
from aanet.engines.opening import open_engine

__all__ = ["Engine", "EngineUnavailableError", "NetworkFacts", "open_engine"]
