// Conversion of disparity to depth and points, as defined in `docs/conventions.md`.

/** The depth of a disparity in meters, or NaN if it is not finite. */
export function depthOf(camera, disparity) {
  const doffs = camera.cx_right === null ? 0 : camera.cx_right - camera.cx;
  const above = disparity + doffs;
  return above > 0 ? (camera.fx * camera.baseline_m) / above : NaN;
}

/** The depth of every pixel in meters, NaN where it is unknown. */
export function depthMap({ camera, disparity }) {
  return disparity.map((value) => depthOf(camera, value)); // a Float32Array, like the disparity
}

/** The disparity of a depth in meters: the inverse of `depthOf`. */
export function disparityOf(camera, depth) {
  const doffs = camera.cx_right === null ? 0 : camera.cx_right - camera.cx;
  return (camera.fx * camera.baseline_m) / depth - doffs;
}

/** The depths at the ends of a range of disparities; one that reaches infinity ends at the depth of one pixel. */
export function depthRange(camera, [low, high]) {
  const farthest = disparityOf(camera, Infinity) + 1;
  return [high, low].map((disparity) => depthOf(camera, Math.max(disparity, farthest)));
}

/**
 * An assumed camera for results without a calibration: a typical focal length, and a baseline with which the
 * median depth is 1. Shapes are roughly right, but lengths have no meaning.
 */
export function assumedCamera(result) {
  const sample = Array.from(result.disparity.filter((d, i) => i % 97 === 0 && d > 0)).sort((a, b) => a - b);
  const middle = sample[Math.floor(sample.length / 2)] || 1;
  const fx = 1.1 * Math.max(result.width, result.height);
  return {
    fx, fy: null, cx: (result.width - 1) / 2, cy: (result.height - 1) / 2, cx_right: null, baseline_m: middle / fx,
  };
}

const EDGE = 0.03; // relative depth difference between neighbors above which they are on different surfaces

/** Points of every `step`-th pixel: positions, colors, confidence, and whether they lie on a surface. */
export function pointsOf(result, camera, maxPoints) {
  const step = Math.ceil(Math.sqrt((result.width * result.height) / maxPoints));
  const columns = Math.floor((result.width - 1) / step) + 1;
  const rows = Math.floor((result.height - 1) / step) + 1;
  const positions = new Float32Array(3 * columns * rows);
  const colors = new Uint8Array(3 * columns * rows);
  const extra = new Float32Array(3 * columns * rows); // confidence, surface, disparity
  const depthAt = (x, y) => depthOf(camera, result.disparity[y * result.width + x]);
  let count = 0;
  for (let y = 0; y < result.height; y += step) {
    for (let x = 0; x < result.width; x += step) {
      const i = y * result.width + x;
      const z = depthAt(x, y);
      if (!Number.isFinite(z)) continue;
      const right = x + 1 < result.width ? depthAt(x + 1, y) : z;
      const below = y + 1 < result.height ? depthAt(x, y + 1) : z;
      const smooth = Math.max(Math.abs(right - z), Math.abs(below - z)) <= EDGE * z; // false for NaN
      positions.set([((x - camera.cx) * z) / camera.fx, ((y - camera.cy) * z) / (camera.fy || camera.fx), z], 3 * count);
      colors.set(result.left.subarray(3 * i, 3 * i + 3), 3 * count);
      extra.set([result.confidence[i], smooth ? 1 : 0, result.disparity[i]], 3 * count);
      count += 1;
    }
  }
  return {
    count, step,
    positions: positions.subarray(0, 3 * count),
    colors: colors.subarray(0, 3 * count),
    extra: extra.subarray(0, 3 * count),
  };
}
