"""`make fuzz ATHERIS=KIND`: libFuzzer looks for inputs that reach new lines of the package's own parsers.

It needs `pip install atheris`, which is no part of the extra `dev`: it has wheels for Linux on x86-64 only.
It stops at the first fault, which it writes to `regressions`.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
from pathlib import Path

from fuzz import REGRESSIONS

# Kinds with parsers in Python; coverage does not see into the native decoders.
GUIDED = (
    *("kitti.txt", "middlebury.txt", "ros.yaml", "camera.json", "opencv.yml", "opencv.xml", "opencv.json"),
    *("image.png", "image.jpg", "progressive.jpg", "image.tif", "image.webp", "image.ppm"),
    *("disparity.pfm", "disparity.npy", "disparity.npz", "points.ply", "pairs.csv", "recipe.toml"),
)


def main() -> None:
    """Run libFuzzer on one kind; the process ends with it."""
    parser = argparse.ArgumentParser(prog="fuzz.guided", description=__doc__)
    parser.add_argument("kind", choices=GUIDED)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    try:
        import atheris
    except ImportError:
        sys.exit("atheris is not installed; `pip install atheris` works on Linux on x86-64.")
    with atheris.instrument_imports(include=["aanet"]):
        import aanet.data.datasets.folder
        import aanet.geometry.calibration
        import aanet.io.depth
        import aanet.io.disparity
        import aanet.io.pairs
        import aanet.io.points
        import aanet.training.recipe  # noqa: F401 - all are instrumented by being imported here
    from aanet.errors import AanetError
    from fuzz.readers import KINDS

    kind, folder = KINDS[options.kind], Path(tempfile.mkdtemp(prefix="aanet-fuzz-"))
    corpus = folder / "corpus"
    corpus.mkdir()
    for content in kind.files():
        (corpus / hashlib.sha256(content).hexdigest()[:12]).write_bytes(content)

    def test(data: bytes) -> None:
        try:
            kind.read(data or b" ", folder)
        except AanetError:
            pass
        except BaseException:
            REGRESSIONS.mkdir(exist_ok=True)
            path = REGRESSIONS / f"{hashlib.sha256(data).hexdigest()[:12]}-0_{options.kind}"
            path.write_bytes(data)
            print(f"Reproduce it with: make fuzz REPLAY='{path}'", file=sys.stderr)
            raise

    os.environ["AANET_CACHE"] = str(folder)
    limits = (f"-max_total_time={60 * options.minutes:.0f}", "-timeout=20", "-rss_limit_mb=2000")
    # libFuzzer takes the seed 0 for a random one.
    seed, crashes = f"-seed={options.seed + 1}", f"-artifact_prefix={folder}/"
    atheris.Setup([sys.argv[0], *limits, seed, "-max_len=4096", crashes, str(corpus)], test)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
