// Distances between two points of the picture with their uncertainty, as in `aanet.geometry.measurement`.
import { depthOf } from "./geometry.js";

const REACH = 3; // the noise is estimated from the second differences within 7 × 7 pixels
const PIXEL = 1 / Math.sqrt(12); // standard deviation of a position that is rounded to a pixel

function median(values) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (!sorted.length) return 0;
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The standard deviation of a disparity, from the noise around it and its confidence. */
export function disparityNoise({ disparity, confidence, width, height }, x, y) {
  const [left, right] = [Math.max(x - REACH, 0), Math.min(x + REACH, width - 1)];
  const [top, bottom] = [Math.max(y - REACH, 0), Math.min(y + REACH, height - 1)];
  const differences = [];
  for (let row = top; row <= bottom; row += 1) {
    for (let column = left; column <= right; column += 1) {
      const i = row * width + column;
      const second = (step) => Math.abs(disparity[i] - (disparity[i - step] + disparity[i + step]) / 2);
      if (column > left && column < right) differences.push(second(1));
      if (row > top && row < bottom) differences.push(second(width));
    }
  }
  const local = (1.4826 * median(differences)) / Math.sqrt(1.5);
  const sure = Math.min(0.99, Math.max(0.01, confidence[y * width + x]));
  return Math.hypot(local, Math.PI / (2 * Math.sqrt(3) * Math.atanh(sure)));
}

/** The point of a pixel: `at` in meters, NaN where there is no depth, and how uncertain its depth is. */
export function pointAt(result, [x, y]) {
  const { camera } = result;
  const depth = depthOf(camera, result.disparity[y * result.width + x]);
  const ray = [(x - camera.cx) / camera.fx, (y - camera.cy) / (camera.fy || camera.fx), 1];
  const deviation = (depth ** 2 * disparityNoise(result, x, y)) / (camera.fx * camera.baseline_m);
  return { depth, ray, deviation, at: ray.map((part) => part * depth) };
}

/** The distance of two pixels in meters and its standard deviation; NaN where there is no depth. */
export function distance(result, first, second) {
  const ends = [pointAt(result, first), pointAt(result, second)];
  const between = ends[1].at.map((part, axis) => part - ends[0].at[axis]);
  const meters = Math.hypot(...between);
  const variance = ends.reduce((sum, end) => {
    const along = meters > 0 ? end.ray.reduce((dot, part, axis) => dot + (part * between[axis]) / meters, 0) : Math.hypot(...end.ray);
    return sum + (along * end.deviation) ** 2 + ((PIXEL * end.depth) / result.camera.fx) ** 2;
  }, 0);
  return { meters, uncertainty: Math.sqrt(variance) };
}

/** A length with two digits of its uncertainty. */
export function lengthText({ meters, uncertainty }) {
  const digits = Math.min(4, Math.max(0, 1 - Math.floor(Math.log10(Math.max(uncertainty, 1e-9)))));
  return `${meters.toFixed(digits)} ± ${uncertainty.toFixed(digits)} m`;
}
