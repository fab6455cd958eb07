"""The arrays that everything passes around."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]  # [H, W, 3] RGB
FloatMap = NDArray[np.float32]
Mask = NDArray[np.bool_]
