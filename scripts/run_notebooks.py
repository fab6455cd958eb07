"""Execute notebooks of docs/notebooks and keep their outputs: `python scripts/run_notebooks.py [NAME …]`."""

from __future__ import annotations

import base64
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import cv2
import nbformat
import numpy as np
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "notebooks"
SECONDS = 900  # for one cell; a busy machine is slow
# What makes the outputs of two runs differ, or belongs to the machine that ran them.
_NOT_KEPT = {"execution", "signature", "vscode", "widgets"}


def execute(path: Path, smaller: dict[str, str] | None = None) -> Any:
    """Execute a notebook in an empty folder and return it with its outputs; an error in a cell is raised.

    Args:
        path: The notebook.
        smaller: Parts of its code and what to run instead; each must be there.
    """
    notebook = nbformat.read(path, as_version=4)
    for part, instead in (smaller or {}).items():
        cells = [cell for cell in notebook.cells if cell.cell_type == "code" and part in cell.source]
        if not cells:
            raise ValueError(f"{path.name} no longer has {part!r}.")
        for cell in cells:
            cell.source = cell.source.replace(part, instead)
    # The kernel starts in another folder.
    folders = [
        str(Path(each).resolve()) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": folder}}
        )
        client.execute(env=environment)
    return notebook


def as_jpeg(picture: str) -> str:
    """Encode a picture in Base64 anew as JPEG, because PNG files of photographs are large."""
    pixels = cv2.imdecode(np.frombuffer(base64.b64decode(picture), np.uint8), cv2.IMREAD_COLOR)
    assert pixels is not None
    return base64.b64encode(cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, 85])[1]).decode()


def main() -> None:
    """The command line."""
    for name in sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*.ipynb")):
        path = FOLDER / f"{name}.ipynb"
        notebook = execute(path)
        for cell in notebook.cells:
            cell.metadata = {key: value for key, value in cell.metadata.items() if key not in _NOT_KEPT}
            for data in [output.data for output in cell.get("outputs", []) if "data" in output]:
                pictures = [data.pop(kind) for kind in ("image/png", "image/jpeg") if kind in data]
                if pictures:
                    data["image/jpeg"] = as_jpeg(pictures[0])
        notebook.metadata = {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
        nbformat.write(notebook, path)
        print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
