"""Run as a program in a process of its own: one library computes a little in bf16 and in float32.

    python bf16_probe.py openvino|torch

It prints one line of JSON: the largest error of bf16 relative to the largest value, and the seconds of both
precisions; or null where the library has no bf16 here.  Where a processor announces instructions that it does
not have, this process dies, and not the one that asked.  It imports nothing of the package.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

ROUNDS = 8
CHANNELS, HEIGHT, WIDTH, SIDE = 64, 48, 96, 256  # of the convolution, and of the matrices


def main() -> None:
    """Answer for the library that the command line names."""
    leave_no_core_dump()
    # This file's own folder: its modules must not be taken for packages of the same name.
    del sys.path[0]
    print(json.dumps({"openvino": probe_openvino, "torch": probe_torch}[sys.argv[1]]()))


def leave_no_core_dump() -> None:
    """Die without a core file and without a window that reports a crash."""
    import ctypes

    if sys.platform == "win32":
        ctypes.windll.kernel32.SetErrorMode(3)
        return
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(
            4, 0, 0, 0, 0
        )  # PR_SET_DUMPABLE: the limit does not hold for dumps into a pipe


def probe_openvino() -> dict[str, Any] | None:
    """A convolution and a matrix product as OpenVINO compiles them."""
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
        # One thread: what else the machine does then disturbs both precisions least.
        properties = {
            "INFERENCE_PRECISION_HINT": precision,
            "INFERENCE_NUM_THREADS": 1,
            "ENABLE_CPU_PINNING": False,
        }
        compiled = core.compile_model(model, "CPU", properties)
        return lambda: list(compiled(values).values())

    return compare(run_at("f32"), run_at("bf16"))


def probe_torch() -> dict[str, Any]:
    """A convolution and a matrix product under autocast, and their gradients, which training needs."""
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
    """Compare numbers and times; the fastest of interleaved runs is what other programs change least."""
    import numpy as np

    pairs = zip(float32(), bf16(), strict=True)  # the warm-up as well
    errors = [np.abs(found - expected).max() / np.abs(expected).max() for expected, found in pairs]
    seconds: dict[str, list[float]] = {"float32": [], "bf16": []}
    for _ in range(ROUNDS):
        for name, run in (("float32", float32), ("bf16", bf16)):
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    # NumPy's maximum: Python's own drops what is not a number.
    return {
        "error": float(np.max(errors)),
        "seconds": {name: min(values) for name, values in seconds.items()},
    }


if __name__ == "__main__":
    main()
