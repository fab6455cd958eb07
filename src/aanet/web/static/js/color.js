// Mapping values to colors, with the same color ramp as in the files that the package writes.

import { depthOf, depthRange } from "./geometry.js";

let ramp = null; // 256 × RGB, near is red and far is blue
const UNKNOWN = [48, 48, 48];
const HIDDEN = [232, 62, 208]; // magenta, which is not similar to any color of the ramp

export function setRamp(colors) {
  ramp = colors;
}

/** The range from the 1st to the 99th percentile, so that a few outliers do not stretch the scale. */
export function valueRange(values) {
  const step = Math.max(1, Math.floor(values.length / 100_000));
  const sample = [];
  for (let i = 0; i < values.length; i += step) if (Number.isFinite(values[i])) sample.push(values[i]);
  if (!sample.length) return [0, 1];
  sample.sort((a, b) => a - b);
  const low = sample[Math.floor(0.01 * (sample.length - 1))];
  const high = sample[Math.ceil(0.99 * (sample.length - 1))];
  return high > low ? [low, high] : [low, low + 1];
}

export function colorOf(value, [low, high]) {
  if (!Number.isFinite(value)) return UNKNOWN;
  return ramp[Math.min(255, Math.max(0, Math.round((255 * (value - low)) / (high - low))))];
}

/** The color of a depth: near is red, as in a disparity, on a logarithmic scale. */
export const colorOfDepth = (depth, [near, far]) => colorOf(-Math.log(depth), [-Math.log(far), -Math.log(near)]);

/** Paint every pixel i with the RGB color `pick(i)`. */
export function paint(canvas, width, height, pick) {
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  for (let i = 0; i < width * height; i += 1) {
    const rgb = pick(i);
    image.data[4 * i] = rgb[0];
    image.data[4 * i + 1] = rgb[1];
    image.data[4 * i + 2] = rgb[2];
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

const gray = Array.from({ length: 256 }, (_, level) => [level, level, level]);

export const pickers = {
  disparity: (result, range) => (i) => colorOf(result.disparity[i], range),
  depth: (result, range) => {
    const depths = depthRange(result.camera, range);
    return (i) => colorOfDepth(depthOf(result.camera, result.disparity[i]), depths);
  },
  confidence: (result) => (i) => gray[Math.round(255 * Math.min(1, Math.max(0, result.confidence[i])))],
  check: (result, range) => (i) => (result.occlusion[i] ? HIDDEN : colorOf(result.disparity[i], range)),
  left: (result) => (i) => result.left.subarray(3 * i, 3 * i + 3),
};

const LONG = 4; // the ratio of the ends above which a logarithmic scale has steps of 1, 2, 5

/** Round numbers on a logarithmic scale from `low` to `high`. */
export function logarithmicTicks(low, high, count) {
  if (high / low <= LONG) return ticks(low, high, count);
  const values = [];
  for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) values.push(...[1, 2, 5].map((m) => m * power));
  return values.filter((value) => value >= low && value <= high).map((value) => Number(value.toPrecision(1)));
}

/** About `count` round numbers between `low` and `high`. */
export function ticks(low, high, count) {
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const values = [];
  for (let v = Math.ceil(low / step) * step; v <= high + 1e-9; v += step) values.push(Number(v.toFixed(10)));
  return values;
}
