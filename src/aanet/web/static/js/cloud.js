// The point cloud of a result; the sliders only change uniforms of the viewer.
import { colorOf } from "./color.js";
import { assumedCamera, pointsOf } from "./geometry.js";
import { PointViewer } from "./viewer.js";

const MAX_POINTS = 1_500_000;
const MAX_LIVE_POINTS = 320_000; // several times per second

export class Cloud extends PointViewer {
  /** `described(shown, all)` is called with the number of points shown and in total. */
  constructor(canvas, described) {
    super(canvas);
    this.described = described;
    this.painted = "left";
  }

  /** Show a result; without a calibration, an assumed camera is used. */
  show(result, range) {
    this.camera = result.camera || assumedCamera(result);
    const points = this.pointsOf(result, range, MAX_POINTS);
    const depths = quantiles(points.positions);
    this.reach = [depths(0.005) * 0.98, depths(0.98) * 1.15];
    this.setPoints(points, this.viewOf(result, points.step, depths(0.35)));
    this.paint(this.painted);
  }

  /** Show the next frame, from where the viewer is. */
  follow(result, range) {
    this.camera = result.camera || this.camera;
    const points = this.pointsOf(result, range, MAX_LIVE_POINTS);
    this.replacePoints(points, this.viewOf(result, points.step, this.view.center[2]));
    this.paint(this.painted);
    this.refilter({});
  }

  pointsOf(result, range, maxPoints) {
    this.metric = Boolean(result.camera);
    this.range = range;
    return pointsOf(result, this.camera, maxPoints);
  }

  /** The view along the optical axis of the camera, around the middle of the image at a depth. */
  viewOf({ width, height }, step, depth) {
    const { fx, fy, cx, cy } = this.camera;
    return {
      center: [(((width - 1) / 2 - cx) * depth) / fx, (((height - 1) / 2 - cy) * depth) / (fy || fx), depth],
      spread: [width / (2 * fx), height / (2 * (fy || fx))],
      pitch: step / fx,
    };
  }

  /** Color the points as in the left image, or by their disparity. */
  paint(what) {
    this.painted = what;
    if (what === "left") {
      this.setColors(this.points.colors);
      return;
    }
    const painted = new Uint8Array(3 * this.points.count);
    for (let i = 0; i < this.points.count; i += 1) painted.set(colorOf(this.points.extra[3 * i + 2], this.range), 3 * i);
    this.setColors(painted);
  }

  /** Change the filter, count the remaining points and draw them. */
  refilter(change) {
    Object.assign(this.filter, change);
    this.described(this.kept().length, this.points.count);
    this.draw();
  }

  /** The pixel of the point that is seen at a position of the canvas (fractions of its size), or null. */
  pixelAt(position) {
    const index = this.pick(position);
    if (index < 0) return null;
    const [x, y, z] = this.points.positions.subarray(3 * index, 3 * index + 3);
    const { fx, fy, cx, cy } = this.camera;
    return [Math.round((x * fx) / z + cx), Math.round((y * (fy || fx)) / z + cy)];
  }
}

/** The depth below which a share of the points lies. */
function quantiles(positions) {
  const sorted = positions.filter((_, i) => i % 3 === 2).sort();
  return (share) => sorted[Math.floor(share * (sorted.length - 1))] || 1;
}
