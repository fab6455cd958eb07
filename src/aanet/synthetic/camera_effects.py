"""Camera effects: exposure, color, blur, noise, vignetting, JPEG artifacts and vertical misalignment."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np

from aanet.typing import FloatMap, Image

NOISE_LENGTH = 1 << 21
MIDDLE_GRAY = 112.0
DARKEST_USUAL = 0.9  # exposure factor; below, a scene is dark
DARK, OVEREXPOSED = 0.12, 0.08  # shares of pairs
DARKEST, LEAST_DARK = 0.025, 0.5  # exposure factors of dark pairs
DEMOSAICED = 0.5  # share of pairs whose noise was interpolated from a Bayer pattern
# Noise of red, green and blue after that, relative to the sensor's: half of its pixels are green.
DEMOSAICED_NOISE = (1.15, 0.7, 1.15)
_SMOOTHED = 2.353  # the inverse of how much the kernel of `_demosaic` reduces the standard deviation


@dataclass(frozen=True)
class CameraEffects:
    """The parameters of one camera."""

    gain: tuple[float, float, float]
    gamma: float
    blur: float  # px
    read_noise: float  # gray levels
    shot_noise: float  # gray levels at full white
    vignetting: float  # darkening in the corners, 0..1
    jpeg_quality: int  # 0: none
    vertical_shift: float  # px
    demosaiced: bool = False


def draw_cameras(
    rng: np.random.Generator, brightness: float, dark: float = DARK
) -> tuple[CameraEffects, CameraEffects]:
    """Draw the left camera, and a right camera that differs slightly, sometimes strongly, from it.

    `brightness` is the mean of the scene, which auto-exposure moves toward middle gray, and `dark` the
    probability that there is too little light for that.
    """
    metered = np.clip(MIDDLE_GRAY / max(brightness, 1.0), 0.75, 2.2)
    light, amplifier_noise = _draw_light(rng, dark)
    exposure = metered * light * np.exp(rng.normal(0.0, 0.2))
    cast = np.exp(rng.normal(0.0, 0.05 if light > DARKEST_USUAL else 0.3, 3))  # lamps are not white
    gain = exposure * cast
    noise = float(rng.choice([0.3, 1.0, 2.5, 5.0], p=[0.3, 0.4, 0.2, 0.1]))
    left = CameraEffects(
        gain=(gain[0], gain[1], gain[2]),
        gamma=float(np.exp(rng.normal(0.0, 0.15))),
        blur=float(rng.choice([0.0, 0.45, 0.6, 0.9], p=[0.35, 0.3, 0.25, 0.1])),
        read_noise=noise * rng.uniform(0.3, 1.0) + amplifier_noise,
        shot_noise=noise * rng.uniform(0.3, 1.5),
        vignetting=float(max(rng.normal(0.0, 0.15), 0.0)),
        jpeg_quality=int(rng.integers(55, 97)) if rng.random() < 0.3 else 0,
        vertical_shift=0.0,
        demosaiced=bool(rng.random() < DEMOSAICED),
    )
    apart = float(rng.choice([0.005, 0.03, 0.12], p=[0.4, 0.45, 0.15]))
    other = np.array(left.gain) * np.exp(rng.normal(0.0, apart) + rng.normal(0.0, apart / 3, 3))
    right = replace(
        left,
        gain=(other[0], other[1], other[2]),
        gamma=left.gamma * float(np.exp(rng.normal(0.0, apart / 2))),
        blur=left.blur if rng.random() < 0.8 else left.blur + float(rng.uniform(0.0, 0.4)),
        vertical_shift=float(rng.uniform(-0.5, 0.5)) if rng.random() < 0.3 else 0.0,
    )
    return left, right


def _draw_light(rng: np.random.Generator, dark: float) -> tuple[float, float]:
    """Draw an exposure error (as in a tunnel or at white walls) and noise of the amplifier in gray levels.

    In dark scenes a camera amplifies the signal, and with it the noise.
    """
    chance, position = rng.random(), rng.random()
    if chance < dark:
        return float(DARKEST ** (1.0 - position) * LEAST_DARK**position), float(rng.uniform(0.5, 5.0))
    return (1.5 + 1.5 * position, 0.0) if chance < dark + OVEREXPOSED else (1.0, 0.0)


def expose(image: FloatMap, camera: CameraEffects, noise: FloatMap, rng: np.random.Generator) -> Image:
    """Apply the effects to a clean view in 0..255, [H, W, 3]; `noise` contains normal samples."""
    height, width = image.shape[:2]
    if camera.vertical_shift:
        image = np.asarray(
            cv2.sepFilter2D(
                image,
                -1,
                np.ones(1, np.float32),
                _cubic(camera.vertical_shift),
                borderType=cv2.BORDER_REPLICATE,
            )
        )
    if camera.blur > 0.2:
        image = np.asarray(cv2.GaussianBlur(image, (5, 5), camera.blur))
    # OpenCV's arithmetic, because NumPy is many times slower when it broadcasts over three channels.
    image = np.asarray(cv2.transform(image, np.diag(camera.gain).astype(np.float32)), np.float32)
    if camera.vignetting > 0.01:
        x, y = np.linspace(-1, 1, width, dtype=np.float32), np.linspace(-1, 1, height, dtype=np.float32)
        fall = np.float32(1.0) - np.float32(camera.vignetting / 2) * (x[None, :] ** 2 + y[:, None] ** 2)
        cv2.multiply(image, cv2.merge([fall, fall, fall]), dst=image)
    exposed = np.asarray(cv2.add(image, _noise(image, camera, noise, rng), dtype=cv2.CV_8U), np.uint8)
    if camera.gamma != 1.0:
        curve = 255.0 * (np.arange(256) / 255.0) ** camera.gamma
        exposed = np.asarray(cv2.LUT(exposed, np.round(curve).astype(np.uint8)), np.uint8)
    if camera.jpeg_quality:
        exposed = _jpeg(exposed, camera.jpeg_quality)
    return exposed


def _cubic(shift: float) -> FloatMap:
    """Return the 5-tap filter that shifts by `shift`, at most one pixel, with cubic interpolation."""
    distance = np.abs(np.arange(-2, 3) - shift)
    near = (1.25 * distance - 2.25) * distance**2 + 1.0
    far = -0.75 * (((distance - 5.0) * distance + 8.0) * distance - 4.0)
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0)).astype(np.float32)


def _noise(image: FloatMap, camera: CameraEffects, noise: FloatMap, rng: np.random.Generator) -> FloatMap:
    """Return intensity-dependent noise from a random position in `noise`, [H, W, 3]."""
    if image.size > noise.size:
        noise = np.resize(noise, image.size + 1)
    start = int(rng.integers(noise.size - image.size + 1))
    normals = noise[start : start + image.size].reshape(image.shape)
    if camera.demosaiced:
        normals = _demosaic(normals)
    # The standard deviation of read and shot noise, sqrt(r² + s² I), linearized between black and white.
    black = camera.read_noise
    white = float(np.hypot(camera.read_noise, camera.shot_noise))
    spread = cv2.addWeighted(image, (white - black) / 255.0, image, 0.0, black)
    return np.asarray(cv2.multiply(spread, normals), np.float32)


def _demosaic(normals: FloatMap) -> FloatMap:
    """Correlate noise between neighbors, as the interpolation of a Bayer pattern and rectification do."""
    smooth = cv2.GaussianBlur(normals, (3, 3), 0.7)
    return np.asarray(
        cv2.transform(smooth, np.diag(DEMOSAICED_NOISE).astype(np.float32) * _SMOOTHED), np.float32
    )


def _jpeg(image: Image, quality: int) -> Image:
    _, data = cv2.imencode(".jpg", image[..., ::-1], (cv2.IMWRITE_JPEG_QUALITY, quality))
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR), np.uint8)[..., ::-1]
