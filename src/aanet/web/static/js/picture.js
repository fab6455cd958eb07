// The 2D view: a colored map with its scale, the value under the pointer, and a second image for comparison.
import { colorOf, colorOfDepth, logarithmicTicks, paint, pickers, ticks } from "./color.js";
import { depthOf, depthRange } from "./geometry.js";
import { Zoom } from "./zoom.js";

const $ = (id) => document.getElementById(id);
const PIXELS_SEEN = 4; // pixels of the screen per pixel of the picture, from which on its pixels are not smoothed
const LARGEST_PIXEL = 40;
const ZOOM_STEP = 1.5;
const INVITATION = "Point at the image to read its values.";
const LABEL = 65; // pixels for a number of the scale
const TITLES = { disparity: "Disparity", depth: "Depth", confidence: "Confidence", check: "Left–right check" };

export class Picture {
  constructor() {
    this.stage = $("stage");
    this.at = null;
    this.zoom = new Zoom(this.stage, () => this.place());
    this.stage.addEventListener("pointermove", (event) => this.point(event));
    this.stage.addEventListener("pointerdown", (event) => this.point(event));
    this.stage.addEventListener("keydown", (event) => this.key(event));
    $("wipe").addEventListener("input", () => this.place());
    $("zoom-in").addEventListener("click", () => this.zoomBy(ZOOM_STEP));
    $("zoom-out").addEventListener("click", () => this.zoomBy(1 / ZOOM_STEP));
    $("zoom-reset").addEventListener("click", () => { this.zoom.reset(); this.stage.focus(); });
    this.listenToDivider();
    new ResizeObserver(() => this.result && this.drawScale()).observe($("scalebar"));
    new ResizeObserver(() => this.result && this.limitZoom()).observe(this.stage);
  }

  listenToDivider() {
    const divider = $("divider");
    divider.addEventListener("pointerdown", (event) => {
      event.stopPropagation(); // it does not move the picture
      event.preventDefault();
      divider.setPointerCapture(event.pointerId);
      $("wipe").focus({ preventScroll: true });
    });
    divider.addEventListener("pointermove", (event) => {
      if (!divider.hasPointerCapture(event.pointerId)) return;
      $("wipe").value = 100 * this.zoom.within(event)[0];
      this.place();
    });
    for (const kind of ["click", "dblclick"]) divider.addEventListener(kind, (event) => event.stopPropagation());
  }

  /** Show a view of a result, optionally compared with the left image ("left") or a result of SGBM. */
  show(result, range, view, other) {
    const sameSize = this.result && this.result.width === result.width && this.result.height === result.height;
    Object.assign(this, { result, range, view, other });
    this.paint();
    $("flat").style.setProperty("--aspect", result.width / result.height);
    if (!sameSize) {
      this.at = null;
      $("cross").hidden = true;
      $("readout").textContent = INVITATION;
      this.zoom.reset();
    }
    for (const id of ["over", "wipe", "divider", "tag-left", "tag-right"]) $(id).hidden = !other;
    $("tag-left").textContent = other === "left" ? "Left image" : "SGBM";
    $("tag-right").textContent = `${TITLES[view]}, ${result.model}`;
    this.limitZoom();
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
    if (this.at) this.read(...this.at);
  }

  /** The zoom ends where single pixels can be pointed at. */
  limitZoom() {
    const pixel = this.stage.clientWidth / this.result.width;
    if (!pixel) return; // not visible
    this.zoom.most = Math.max(LARGEST_PIXEL / pixel, 4);
    this.zoom.by(1, [0.5, 0.5]);
  }

  /** Zoom around the cursor if it is seen, or else around the center. */
  zoomBy(factor) {
    const cursor = this.at ? this.zoom.toFrame(this.share(...this.at)) : [0.5, 0.5];
    this.zoom.by(factor, cursor.every((part) => part >= 0 && part <= 1) ? cursor : [0.5, 0.5]);
  }

  /** The center of a pixel as a fraction of the picture. */
  share(x, y) {
    return [(x + 0.5) / this.result.width, (y + 0.5) / this.result.height];
  }

  /** Put the maps, the divider, the cursor and the ruler where the zoom wants them. */
  place() {
    if (!this.result) return;
    const { width, height } = this.result;
    const { scale, x, y } = this.zoom;
    const divider = Number($("wipe").value);
    for (const map of [$("under"), $("over")]) {
      map.style.transform = `translate(${-100 * x * scale}%, ${-100 * y * scale}%) scale(${scale})`;
      map.classList.toggle("pixels", (scale * this.stage.clientWidth) / width >= PIXELS_SEEN);
    }
    $("over").style.clipPath = `inset(0 ${100 * (1 - x) - divider / scale}% 0 0)`;
    $("divider").style.left = `${divider}%`;
    $("ruler-line").setAttribute("viewBox", `${x * width} ${y * height} ${width / scale} ${height / scale}`);
    if (this.at) {
      const [left, top] = this.zoom.toFrame(this.share(...this.at));
      Object.assign($("cross").style, { left: `${100 * left}%`, top: `${100 * top}%` });
    }
    $("zoom-value").textContent = `${scale.toFixed(1)}×`;
    $("zoom-out").disabled = $("zoom-reset").disabled = scale === 1;
    $("zoom-in").disabled = scale >= this.zoom.most;
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
    if (!this.result || event.target !== this.stage || event.ctrlKey || event.metaKey || event.altKey) return;
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.key in arrows) this.moveCursor(...arrows[event.key], event.shiftKey ? 10 : 1);
    else if (event.key === "+" || event.key === "=") this.zoomBy(ZOOM_STEP);
    else if (event.key === "-") this.zoomBy(1 / ZOOM_STEP);
    else if (event.key === "0") this.zoom.reset();
    else return;
    event.preventDefault();
  }

  moveCursor(dx, dy, step) {
    const { width, height } = this.result;
    const [x, y] = this.at || [Math.floor(width / 2), Math.floor(height / 2)];
    const inside = (value, size) => Math.min(size - 1, Math.max(0, value));
    this.read(inside(x + step * dx, width), inside(y + step * dy, height));
    this.zoom.reveal(this.share(...this.at));
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
    $("cross").hidden = false;
    this.place();
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

  /** The scale: its value at a share of its length, the inverse, round values, their colors and labels. */
  scale() {
    const { result, range, view } = this;
    const linear = ([low, high]) => ({
      at: (share) => low + (high - low) * share,
      shareOf: (value) => (value - low) / (high - low),
      values: (count) => ticks(low, high, count),
    });
    if (view === "confidence") {
      return { ...linear([0, 1]), color: (v) => Array(3).fill(Math.round(255 * v)), label: (v) => `${v}` };
    }
    if (view === "depth") {
      const [near, far] = depthRange(result.camera, range);
      return {
        at: (share) => near * (far / near) ** share,
        shareOf: (value) => Math.log(value / near) / Math.log(far / near),
        values: (count) => logarithmicTicks(near, far, count),
        color: (v) => colorOfDepth(v, [near, far]),
        label: (v) => `${v} m`,
      };
    }
    const label = (value) => {
      if (!result.camera) return `${value} px`;
      const depth = depthOf(result.camera, value);
      return `${value} px\n${Number.isFinite(depth) ? `${depth.toFixed(2)} m` : "∞"}`;
    };
    return { ...linear(range), color: (v) => colorOf(v, range), label };
  }

  drawScale() {
    const { at, shareOf, values, color, label } = this.scale();
    paint($("ramp"), 256, 1, (i) => color(at(i / 255)));
    const apart = LABEL / $("scalebar").clientWidth;
    let last = -Infinity;
    const marks = values(Math.max(3, 1 / apart)).filter((value) => {
      const free = shareOf(value) - last >= 0.75 * apart;
      if (free) last = shareOf(value);
      return free;
    }).map((value) => {
      const mark = document.createElement("span");
      mark.style.left = `${100 * shareOf(value)}%`;
      mark.textContent = label(value);
      return mark;
    });
    $("ticks").replaceChildren(...marks);
    $("ticks").classList.toggle("single", !marks.some((mark) => mark.textContent.includes("\n")));
  }
}
