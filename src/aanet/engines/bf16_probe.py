"""A script that runs a small computation in bf16 and in float32, in a separate process.

    python bf16_probe.py openvino|torch

It prints one line of JSON: the largest error of bf16 relative to the largest value, and the time of both
precisions in seconds; or null if the library does not support bf16 on this machine. If the processor reports
instructions that it does not have, this process crashes instead of the caller. It imports nothing from aanet.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

ROUNDS = 8
CHANNELS, HEIGHT, WIDTH = 64, 48, 96  # of the convolution
SIDE = 256  # of the matrices


def main() -> None:
    """Probe the library named on the command line and print the result."""
    disable_core_dumps()
    # Remove this file's folder, whose modules would shadow packages of the same name.
    del sys.path[0]
    print(json.dumps({"openvino": probe_openvino, "torch": probe_torch}[sys.argv[1]]()))


def disable_core_dumps() -> None:
    """Make a crash leave no core file and open no crash dialog."""
    import ctypes

    if sys.platform == "win32":
        ctypes.windll.kernel32.SetErrorMode(3)
        return
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        # PR_SET_DUMPABLE, because the limit does not apply to core dumps that are piped to a program.
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)


def probe_openvino() -> dict[str, Any] | None:
    """Compare a convolution and a matrix product in OpenVINO."""
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # as in aanet.engines
    import numpy as np
    import openvino
    from openvino import opset13 as ops

    core = openvino.Core()
    if "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        return None
    draw = np.random.default_rng(0).standard_normal
    weight = draw((CHANNELS, CHANNELS, 3, 3), np.float32)
    image, matrix, other = (
        draw((1, CHANNELS, HEIGHT, WIDTH)),
        draw((SIDE, SIDE)),
        draw((SIDE, SIDE), np.float32),
    )
    inputs = [ops.parameter(value.shape, np.float32) for value in (image, matrix)]
    one = [1, 1]
    results = [
        ops.convolution(inputs[0], ops.constant(weight), one, one, one, one),
        ops.matmul(inputs[1], ops.constant(other), False, False),
    ]
    model = openvino.Model(results, inputs)
    values = [image.astype(np.float32), matrix.astype(np.float32)]

    def run_at(precision: str) -> Callable[[], list[Any]]:
        # A single thread is affected least by other load on the machine.
        properties = {
            "INFERENCE_PRECISION_HINT": precision,
            "INFERENCE_NUM_THREADS": 1,
            "ENABLE_CPU_PINNING": False,
        }
        compiled = core.compile_model(model, "CPU", properties)
        return lambda: list(compiled(values).values())

    return compare(run_at("f32"), run_at("bf16"))


def probe_torch() -> dict[str, Any]:
    """Compare a convolution and a matrix product under autocast, with the gradients that training needs."""
    import torch
    from torch.nn import functional as F

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(CHANNELS, CHANNELS, 3, 3, generator=generator, requires_grad=True)
    image = torch.randn(1, CHANNELS, HEIGHT, WIDTH, generator=generator, requires_grad=True)
    matrix = torch.randn(SIDE, SIDE, generator=generator, requires_grad=True)
    leaves = (weight, image, matrix)

    def run_at(half: bool) -> Callable[[], list[Any]]:
        def run() -> list[Any]:
            with torch.autocast("cpu", torch.bfloat16, enabled=half):
                outputs = [F.conv2d(image, weight, padding=1), matrix @ matrix]
            gradients = torch.autograd.grad([output.float().sum() for output in outputs], leaves)
            return [each.detach().float().numpy() for each in (*outputs, *gradients)]

        return run

    return compare(run_at(False), run_at(True))


def compare(float32: Callable[[], list[Any]], bf16: Callable[[], list[Any]]) -> dict[str, Any]:
    """Compare values and times; the minimum of interleaved runs is affected least by other programs."""
    import numpy as np

    pairs = zip(float32(), bf16(), strict=True)  # also the warm-up
    errors = [np.abs(found - expected).max() / np.abs(expected).max() for expected, found in pairs]
    seconds: dict[str, list[float]] = {"float32": [], "bf16": []}
    for _ in range(ROUNDS):
        for name, run in (("float32", float32), ("bf16", bf16)):
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    # np.max propagates NaN, unlike max.
    return {
        "error": float(np.max(errors)),
        "seconds": {name: min(values) for name, values in seconds.items()},
    }


if __name__ == "__main__":
    main()
