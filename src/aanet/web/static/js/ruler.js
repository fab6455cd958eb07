// The ruler: two points of the picture, the line between them and its length.
import { distance, lengthText } from "./measure.js";

const $ = (id) => document.getElementById(id);

export class Ruler {
  constructor(picture) {
    this.picture = picture;
    this.points = this.before = [];
    const stage = $("stage");
    stage.addEventListener("click", (event) => this.click(event));
    stage.addEventListener("keydown", (event) => {
      if (event.target !== stage) return;
      if (event.key === "Enter") this.place(picture.at);
      else if (event.key === "Escape") this.clear();
    });
  }

  /** A double click zooms: its second click takes back what the first one did. */
  click(event) {
    if (event.detail > 1) {
      this.points = this.before;
      this.draw();
    } else {
      this.before = this.points;
      this.place(this.picture.pixelAt(event));
    }
  }

  /** Add a point; a third one begins a new measurement. */
  place(point) {
    const { result } = this.picture;
    if (!point || !result || !result.camera) return;
    this.points = [...(this.points.length === 2 ? [] : this.points), point];
    this.draw();
  }

  clear() {
    this.points = [];
    this.draw();
  }

  draw() {
    const { result } = this.picture;
    const [first, second] = this.points;
    const line = $("ruler-line");
    line.toggleAttribute("hidden", !first);
    if (first) {
      const [from, to] = [first, second || first].map(([x, y]) => [x + 0.5, y + 0.5]);
      for (const shape of line.querySelectorAll("line")) {
        ["x1", "y1", "x2", "y2"].forEach((name, i) => shape.setAttribute(name, [...from, ...to][i]));
      }
    }
    $("ruler").textContent = this.describe(result, first, second);
  }

  describe(result, first, second) {
    if (!result || !result.camera) return "";
    if (!first) return "Click two points, or press Enter at the cursor, to measure their distance.";
    if (!second) return `From x ${first[0]}, y ${first[1]} to …`;
    const length = distance(result, first, second);
    const ends = `From x ${first[0]}, y ${first[1]} to x ${second[0]}, y ${second[1]}`;
    return Number.isFinite(length.meters) ? `${ends}: ${lengthText(length)}` : `${ends}: infinitely far`;
  }
}
