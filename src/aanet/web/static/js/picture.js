// The 2D view: a colored map with its scale, the value under the pointer, and a second image for comparison.
import { colorOf, colorOfDepth, paint, pickers, ticks } from "./color.js";
import { depthOf, depthRange } from "./geometry.js";

const $ = (id) => document.getElementById(id);
const TITLES = { disparity: "Disparity", depth: "Depth", confidence: "Confidence", check: "Left–right check" };

export class Picture {
  constructor() {
    this.stage = $("stage");
    this.at = null;
    this.stage.addEventListener("pointermove", (event) => this.point(event));
    this.stage.addEventListener("pointerdown", (event) => this.point(event));
    this.stage.addEventListener("keydown", (event) => this.key(event));
    $("wipe").addEventListener("input", () => this.wipe());
    new ResizeObserver(() => this.result && this.drawScale()).observe($("scalebar"));
  }

  /** Show a view of a result, optionally compared with the left image ("left") or a result of SGBM. */
  show(result, range, view, other) {
    Object.assign(this, { result, range, view, other });
    this.paint();
    this.stage.classList.toggle("large", result.width > 600);
    for (const id of ["over", "wipe", "divider", "tag-left", "tag-right"]) $(id).hidden = !other;
    $("tag-left").textContent = other === "left" ? "Left image" : "SGBM";
    $("tag-right").textContent = `${TITLES[view]}, ${result.model}`;
    this.wipe();
    this.drawScale();
    this.describe();
    this.readAgain();
  }

  /** Show the next frame in the same way. */
  update(result) {
    this.result = result;
    this.paint();
    this.readAgain();
  }

  paint() {
    const { result, range, view, other } = this;
    paint($("under"), result.width, result.height, pickers[view](result, range));
    if (other === "left") paint($("over"), result.width, result.height, pickers.left(result));
    else if (other) paint($("over"), result.width, result.height, pickers[view](other, range));
  }

  readAgain() {
    if (this.at && this.at[0] < this.result.width && this.at[1] < this.result.height) this.read(...this.at);
  }

  wipe() {
    const share = Number($("wipe").value);
    $("over").style.clipPath = `inset(0 ${100 - share}% 0 0)`;
    $("divider").style.left = `${share}%`;
  }

  point(event) {
    const pixel = this.pixelAt(event);
    if (pixel) this.read(...pixel);
  }

  /** The pixel under the pointer, or null outside of the picture. */
  pixelAt(event) {
    if (!this.result) return null;
    const box = $("under").getBoundingClientRect();
    const x = Math.floor(((event.clientX - box.left) / box.width) * this.result.width);
    const y = Math.floor(((event.clientY - box.top) / box.height) * this.result.height);
    return x >= 0 && y >= 0 && x < this.result.width && y < this.result.height ? [x, y] : null;
  }

  key(event) {
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (!this.result || !(event.key in arrows) || event.target !== this.stage) return;
    event.preventDefault();
    const step = event.shiftKey ? 10 : 1;
    const { width, height } = this.result;
    const [x, y] = this.at || [Math.floor(width / 2), Math.floor(height / 2)];
    const [dx, dy] = arrows[event.key];
    const inside = (value, size) => Math.min(size - 1, Math.max(0, value));
    this.read(inside(x + step * dx, width), inside(y + step * dy, height));
  }

  /** Show the values of a pixel. */
  read(x, y) {
    this.at = [x, y];
    const { result } = this;
    const i = y * result.width + x;
    const disparity = result.disparity[i];
    const parts = [`x ${x}, y ${y}`, `<b>${disparity.toFixed(2)} px</b>`];
    if (result.camera) {
      const depth = depthOf(result.camera, disparity);
      parts.push(Number.isFinite(depth) ? `<b>${depth.toFixed(3)} m</b>` : "<b>infinitely far</b>");
    }
    parts.push(`confidence ${result.confidence[i].toFixed(2)}`);
    if (result.occlusion) parts.push(result.occlusion[i] ? "fails the left–right check" : "left and right agree");
    if (this.other && this.other !== "left") parts.push(`SGBM ${this.other.disparity[i].toFixed(2)} px`);
    $("readout").innerHTML = parts.join(" · ");
    const cross = $("cross");
    cross.hidden = false;
    cross.style.left = `${(100 * (x + 0.5)) / result.width}%`;
    cross.style.top = `${(100 * (y + 0.5)) / result.height}%`;
  }

  describe() {
    const { result, view } = this;
    const notes = {
      disparity: "Red is near, blue is far.",
      depth: "Red is near, blue is far.",
      confidence: "White is high confidence, black is low.",
      check: () => {
        const share = result.occlusion.reduce((sum, hidden) => sum + hidden, 0) / result.occlusion.length;
        return `Magenta: ${(100 * share).toFixed(1)} % of the pixels fail the left–right check; `
          + "most of them are occluded in the right image.";
      },
    };
    $("note").textContent = typeof notes[view] === "string" ? notes[view] : notes[view]();
    $("under").setAttribute("aria-label", `${TITLES[view]} of ${result.width} by ${result.height} pixels`);
  }

  /** The ends of the scale, and the color and the label of a value on it. */
  scale() {
    const { result, range, view } = this;
    if (view === "confidence") return { ends: [0, 1], color: (v) => Array(3).fill(Math.round(255 * v)), label: (v) => `${v}` };
    if (view === "depth") {
      const ends = depthRange(result.camera, range);
      return { ends, color: (v) => colorOfDepth(v, ends), label: (v) => `${v} m` };
    }
    const label = (value) => {
      if (!result.camera) return `${value} px`;
      const depth = depthOf(result.camera, value);
      return `${value} px\n${Number.isFinite(depth) ? `${depth.toFixed(2)} m` : "∞"}`;
    };
    return { ends: range, color: (v) => colorOf(v, range), label };
  }

  drawScale() {
    const { ends: [low, high], color, label } = this.scale();
    paint($("ramp"), 256, 1, (i) => color(low + ((high - low) * i) / 255));
    const labels = ticks(low, high, Math.max(3, $("scalebar").clientWidth / 65)).map((value) => {
      const mark = document.createElement("span");
      mark.style.left = `${(100 * (value - low)) / (high - low)}%`;
      mark.textContent = label(value);
      return mark;
    });
    $("ticks").replaceChildren(...labels);
  }
}
