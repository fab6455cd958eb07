"""Fuzzing of everything that the package reads: `make fuzz`, and with a fixed seed in the tests.

Valid files (`valid_files`, `valid_networks`) are mutated (`mutation`, `structure`) and read (`readers`) in
child processes with limits (`child`, `running`).  What fails is minimized and kept in `regressions`.
"""

from pathlib import Path

REGRESSIONS = Path(__file__).resolve().parent / "regressions"
