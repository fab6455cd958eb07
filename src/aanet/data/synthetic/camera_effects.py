"""What two real cameras add to a scene: exposure, colour, blur, noise, vignetting, JPEG and misalignment."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np

from aanet.data.sample import FloatMap, Image

NOISE_LENGTH = 1 << 21


@dataclass(frozen=True)
class CameraEffects:
    """The state of one camera; `identity()` leaves a picture as it is."""

    gain: tuple[float, float, float]
    gamma: float
    blur: float  # px
    read_noise: float  # grey levels
    shot_noise: float  # grey levels at full white
    vignetting: float  # darkening in the corners, 0..1
    jpeg_quality: int  # 0: none
    vertical_shift: float  # px

    @staticmethod
    def identity() -> CameraEffects:
        """A perfect camera."""
        return CameraEffects((1.0, 1.0, 1.0), 1.0, 0.0, 0.0, 0.0, 0.0, 0, 0.0)


def draw_cameras(rng: np.random.Generator) -> tuple[CameraEffects, CameraEffects]:
    """A left camera, and a right one of the same make that differs a little, now and then a lot."""
    exposure = np.exp(rng.normal(0.0, 0.22))
    cast = np.exp(rng.normal(0.0, 0.05, 3))
    gain = exposure * cast
    noise = float(rng.choice([0.3, 1.0, 2.5, 5.0], p=[0.3, 0.4, 0.2, 0.1]))
    left = CameraEffects(
        gain=(gain[0], gain[1], gain[2]),
        gamma=float(np.exp(rng.normal(0.0, 0.15))),
        blur=float(rng.choice([0.0, 0.45, 0.6, 0.9], p=[0.35, 0.3, 0.25, 0.1])),
        read_noise=noise * rng.uniform(0.3, 1.0),
        shot_noise=noise * rng.uniform(0.3, 1.5),
        vignetting=float(max(rng.normal(0.0, 0.15), 0.0)),
        jpeg_quality=int(rng.integers(55, 97)) if rng.random() < 0.3 else 0,
        vertical_shift=0.0,
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


def expose(image: FloatMap, camera: CameraEffects, noise: FloatMap, rng: np.random.Generator) -> Image:
    """The 8-bit picture that a camera takes of a clean view in 0..255, [H, W, 3]; `noise` is a store of normals."""
    height, width = image.shape[:2]
    if camera.vertical_shift:
        move = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, camera.vertical_shift]])
        flags, border = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP, cv2.BORDER_REPLICATE
        image = np.asarray(cv2.warpAffine(image, move, (width, height), flags=flags, borderMode=border))
    if camera.blur > 0.2:
        image = np.asarray(cv2.GaussianBlur(image, (5, 5), camera.blur))
    light: FloatMap = np.asarray(camera.gain, np.float32) * np.ones((height, 1, 1), np.float32)
    if camera.vignetting > 0.01:
        x, y = np.linspace(-1, 1, width, dtype=np.float32), np.linspace(-1, 1, height, dtype=np.float32)
        fall = 1.0 - np.float32(camera.vignetting / 2) * (x[None, :] ** 2 + y[:, None] ** 2)
        light = light * fall[..., None]
    image = image * light
    if camera.read_noise or camera.shot_noise:
        image += _noise(image, camera, noise, rng)
    exposed = np.clip(image + np.float32(0.5), 0.0, 255.0).astype(np.uint8)
    if camera.gamma != 1.0:
        curve = 255.0 * (np.arange(256) / 255.0) ** camera.gamma
        exposed = np.asarray(cv2.LUT(exposed, np.round(curve).astype(np.uint8)), np.uint8)
    if camera.jpeg_quality:
        exposed = _jpeg(exposed, camera.jpeg_quality)
    return exposed


def _noise(image: FloatMap, camera: CameraEffects, noise: FloatMap, rng: np.random.Generator) -> FloatMap:
    """Read noise plus shot noise whose variance grows with the light, from a random place of the store."""
    start = int(rng.integers(max(noise.size - image.size, 1)))
    normals = np.resize(noise[start:], image.shape)
    if not camera.shot_noise:
        return np.float32(camera.read_noise) * normals
    variance = image * np.float32(camera.shot_noise**2 / 255.0) + np.float32(camera.read_noise**2)
    return np.sqrt(np.maximum(variance, np.float32(0.0))) * normals


def _jpeg(image: Image, quality: int) -> Image:
    _, data = cv2.imencode(".jpg", image[..., ::-1], (cv2.IMWRITE_JPEG_QUALITY, quality))
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR), np.uint8)[..., ::-1]
