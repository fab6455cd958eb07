"""Frames per second and latency of `aanet live` for some models: a video of 640×480 pixels, 30 frames/s."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from aanet.data.motorcycle import motorcycle

WIDTH, HEIGHT, FPS = 640, 480, 30
SECONDS = 3.5
CHOICES = (
    ("sgbm", "1"),
    ("sgbm", "0.5"),
    ("stereonet_aa", "1"),
    ("stereonet_aa", "0.5"),
    ("aanet_fast", "0.5"),
    ("aanet", "0.5"),
)


def write_video(path: Path) -> None:
    """A camera that moves to and fro over the Motorcycle pair."""
    sample = motorcycle()
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), FPS, (2 * WIDTH, HEIGHT))
    for angle in np.linspace(0, 2 * np.pi, 60):
        x = round(50 + 50 * np.sin(angle))
        views = [image[10 : 10 + HEIGHT, x : x + WIDTH] for image in (sample.left, sample.right)]
        writer.write(np.ascontiguousarray(np.hstack(views)[:, :, ::-1]))
    writer.release()


def watch(url: str) -> tuple[float, list[float], list[int]]:
    """Read every result as the page does: frames per second, ages in seconds, and bytes."""
    version, ages, sizes = 0, [], []
    start = time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        with urllib.request.urlopen(f"{url}api/v1/live/view?after={version}") as answer:
            body = answer.read()
        facts: dict[str, Any] = json.loads(body.split(b"\n", 1)[0])
        version = facts["version"]
        if "maps" in facts:
            ages.append(facts["live"]["age"])
            sizes.append(len(body))
    return len(ages) / (time.perf_counter() - start), ages, sizes


def main() -> None:
    """Print a table."""
    print("| model | scale | frames/s | latency | data per frame |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        video = Path(folder) / "both.avi"
        write_video(video)
        for model, scale in CHOICES:
            command = [sys.executable, "-m", "aanet", "live", str(video), "--port", "0"]
            server = subprocess.Popen(
                [*command, "--model", model, "--scale", scale], stdout=subprocess.PIPE, text=True
            )
            assert server.stdout is not None
            url = server.stdout.readline().split(": ", 1)[1].strip()
            fps, ages, sizes = watch(url)
            latency, size = 1000 * statistics.median(ages), statistics.median(sizes) / 1e6
            print(f"| {model} | {scale} | {fps:.1f} | {latency:.0f} ms | {size:.2f} MB |", flush=True)
            server.terminate()
            server.wait(30)


if __name__ == "__main__":
    main()
