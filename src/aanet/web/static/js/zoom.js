// Zooming and moving a picture in a frame of the same shape: wheel, drag, pinch and double click.
import { wheelFactor } from "./wheel.js";

const DOUBLE_CLICK = 4; // the magnification after a double click on the whole picture
const DRAG = 4; // pixels; a shorter movement is a click
const SAME_GESTURE_MS = 400;

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

/** Positions are fractions of the size of the picture or of the frame, so that the frame may change its size. */
export class Zoom {
  /** `changed()` is called after every change of `scale` (1: everything is seen), `x` and `y` (the upper left corner). */
  constructor(frame, changed) {
    Object.assign(this, { frame, changed, scale: 1, x: 0, y: 0, most: 8, pointers: new Map(), dragged: false, turned: 0 });
    frame.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    frame.addEventListener("pointerdown", (event) => this.down(event));
    frame.addEventListener("pointermove", (event) => this.move(event));
    for (const kind of ["pointerup", "pointercancel"]) frame.addEventListener(kind, (event) => this.up(event));
    frame.addEventListener("dblclick", (event) => (this.scale > 1 ? this.reset() : this.by(DOUBLE_CLICK, this.within(event))));
    // The end of a drag is not a click; this listener comes before those of the elements inside.
    frame.addEventListener("click", (event) => this.dragged && event.stopImmediatePropagation(), { capture: true });
    // Two fingers belong to the picture; one scrolls the page as long as everything is seen (touch-action in viewer.css).
    const claim = (event) => event.touches.length > 1 && event.cancelable && event.preventDefault();
    for (const kind of ["touchstart", "touchmove"]) frame.addEventListener(kind, claim, { passive: false });
  }

  /** Where an event is in the frame. */
  within(event) {
    const box = this.frame.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  }

  /** Where a position of the picture is in the frame. */
  toFrame([x, y]) {
    return [(x - this.x) * this.scale, (y - this.y) * this.scale];
  }

  /** Enlarge by a factor; the picture stays where it is at this position in the frame. */
  by(factor, [u, v]) {
    const scale = clamp(this.scale * factor, 1, this.most);
    this.set(scale, this.x + u / this.scale - u / scale, this.y + v / this.scale - v / scale);
  }

  /** Move the picture by fractions of the frame. */
  pan(du, dv) {
    this.set(this.scale, this.x - du / this.scale, this.y - dv / this.scale);
  }

  /** Move the picture just so far that a position of it is seen. */
  reveal([x, y]) {
    const margin = 0.1 / this.scale;
    const side = 1 / this.scale;
    this.set(this.scale, clamp(this.x, x - side + margin, x - margin), clamp(this.y, y - side + margin, y - margin));
  }

  reset() {
    this.set(1, 0, 0);
  }

  set(scale, x, y) {
    const last = 1 - 1 / scale;
    [this.scale, this.x, this.y] = [scale, clamp(x, 0, last), clamp(y, 0, last)];
    this.frame.classList.toggle("zoomed", scale > 1);
    this.changed();
  }

  wheel(event) {
    const factor = wheelFactor(event);
    const now = performance.now();
    // The whole picture cannot become smaller: the page scrolls, unless this turn of the wheel has just zoomed.
    if (factor < 1 && this.scale === 1 && now - this.turned > SAME_GESTURE_MS) return;
    event.preventDefault();
    this.turned = now;
    this.by(factor, this.within(event));
  }

  down(event) {
    if (event.button > 0) return;
    if (!this.pointers.size) this.dragged = false;
    this.pointers.set(event.pointerId, { at: this.within(event), from: [event.clientX, event.clientY] });
  }

  move(event) {
    if (!event.buttons) this.up(event); // released outside of the frame
    const pointer = this.pointers.get(event.pointerId);
    if (!pointer) return;
    const before = this.grip();
    pointer.at = this.within(event);
    const [x, y] = pointer.from;
    if (!this.dragged && this.pointers.size === 1 && Math.hypot(event.clientX - x, event.clientY - y) < DRAG) {
      pointer.at = before.center; // so that the picture catches up with the pointer
      return;
    }
    if (!this.dragged) this.frame.setPointerCapture(event.pointerId);
    this.dragged = true;
    const after = this.grip();
    if (before.spread && after.spread) this.by(after.spread / before.spread, before.center);
    this.pan(after.center[0] - before.center[0], after.center[1] - before.center[1]);
  }

  up(event) {
    this.pointers.delete(event.pointerId);
  }

  /** The center of one or two fingers in the frame, and the pixels between them. */
  grip() {
    const at = [...this.pointers.values()].slice(0, 2).map((pointer) => pointer.at);
    const box = this.frame.getBoundingClientRect();
    const [first, last] = [at[0], at[at.length - 1]];
    return {
      center: [(first[0] + last[0]) / 2, (first[1] + last[1]) / 2],
      spread: Math.hypot((first[0] - last[0]) * box.width, (first[1] - last[1]) * box.height),
    };
  }
}
