// The ruler: two pixels, the line between them in the picture and among the points, and its length.
import { distance, lengthText, pointAt } from "./measure.js";

const $ = (id) => document.getElementById(id);
const CLICK = 4; // pixels; a longer movement turns the points

/** Draw a line, with its ends in the units of the drawing, or hide it. */
function drawLine(drawing, ends) {
  drawing.toggleAttribute("hidden", !ends);
  if (!ends) return;
  for (const line of drawing.querySelectorAll("line")) {
    ["x1", "y1", "x2", "y2"].forEach((name, i) => line.setAttribute(name, ends.flat()[i]));
  }
}

export class Ruler {
  constructor(picture, cloud) {
    Object.assign(this, { cloud, result: null, points: [], before: [] });
    const within = (event) => {
      const box = $("cloud").getBoundingClientRect();
      return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
    };
    $("stage").addEventListener("click", (event) => this.click(event, picture.pixelAt(event)));
    $("cloud").addEventListener("click", (event) => cloud.orbit.dragged < CLICK && this.click(event, this.inCloud(within(event))));
    this.listen($("stage"), () => picture.at);
    this.listen($("cloud"), () => this.inCloud([0.5, 0.5]));
    cloud.drawn = () => this.drawInCloud();
  }

  listen(target, pixel) {
    target.addEventListener("keydown", (event) => {
      if (event.target !== target) return;
      if (event.key === "Enter") this.place(pixel());
      else if (event.key === "Escape") this.clear();
    });
  }

  /** Without a calibration there is nothing to measure. */
  get measures() {
    return Boolean(this.result && this.result.camera);
  }

  /** Measure in another result. */
  begin(result) {
    this.result = result;
    this.clear();
  }

  /** Measure the same pixels in the next frame. */
  follow(result) {
    this.result = result;
    if (this.points.length) this.draw();
  }

  inCloud(position) {
    return this.measures ? this.cloud.pixelAt(position) : null;
  }

  /** A double click zooms: its second click takes back what the first one did. */
  click(event, pixel) {
    if (event.detail > 1) {
      this.points = this.before;
      this.draw();
    } else {
      this.before = this.points;
      this.place(pixel);
    }
  }

  /** Add a point; a third one begins a new measurement. */
  place(pixel) {
    if (!pixel || !this.measures) return;
    this.points = [...(this.points.length === 2 ? [] : this.points), pixel];
    this.draw();
  }

  clear() {
    this.points = this.before = [];
    this.draw();
  }

  draw() {
    const [first, second] = this.points;
    drawLine($("ruler-line"), first && [first, second || first].map(([x, y]) => [x + 0.5, y + 0.5]));
    this.drawInCloud();
    $("ruler").textContent = this.describe("Click two points, or press Enter at the cursor, to measure their distance.");
    $("cloud-ruler").textContent = this.describe("Click two points to measure their distance; Enter takes the point in the middle.");
  }

  /** The points turn under the line, which is drawn above them. */
  drawInCloud() {
    const [first, second] = this.measures ? this.points : [];
    if (!first || !this.cloud.matrix) {
      drawLine($("cloud-line"), null);
      return;
    }
    const ends = [first, second || first].map((pixel) => this.cloud.project(...pointAt(this.result, pixel).at));
    const seen = ends.every((end) => end && end.every(Number.isFinite)); // neither behind the viewer nor infinitely far
    drawLine($("cloud-line"), seen ? ends.map(([x, y]) => [x, y]) : null);
  }

  describe(invitation) {
    const [first, second] = this.points;
    if (!this.measures) return "";
    if (!first) return invitation;
    if (!second) return `From x ${first[0]}, y ${first[1]} to …`;
    const length = distance(this.result, first, second);
    const ends = `From x ${first[0]}, y ${first[1]} to x ${second[0]}, y ${second[1]}`;
    return Number.isFinite(length.meters) ? `${ends}: ${lengthText(length)}` : `${ends}: infinitely far`;
  }
}
