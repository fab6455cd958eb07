// A camera that orbits a point, controlled by mouse, touch and keyboard.
import { wheelFactor } from "./wheel.js";

export class Orbit {
  constructor(canvas, changed, wheelNeedsFocus = false) {
    this.canvas = canvas;
    this.changed = changed;
    this.pointers = new Map();
    this.setHome([0, 0, -1], 1);
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const kind of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(kind, (event) => this.pointers.delete(event.pointerId));
    }
    canvas.addEventListener("wheel", (event) => {
      if (wheelNeedsFocus && document.activeElement !== canvas) return;
      event.preventDefault();
      this.zoom(1 / wheelFactor(event));
    }, { passive: false });
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  setHome(target, distance) {
    this.homeView = { target, distance };
    this.home();
  }

  home() {
    this.target = [...this.homeView.target];
    this.distance = this.homeView.distance;
    this.yaw = -0.22;
    this.pitch = 0.14;
    this.changed();
  }

  turn(dx, dy) {
    this.yaw += dx;
    this.pitch = Math.min(1.5, Math.max(-1.5, this.pitch + dy));
    this.changed();
  }

  /** Move the target of the camera; distances are relative to the height of the canvas. */
  pan(dx, dy) {
    const [right, up] = this.axes();
    const reach = this.distance * this.reach;
    for (let axis = 0; axis < 3; axis += 1) this.target[axis] += reach * (dy * up[axis] - dx * right[axis]);
    this.changed();
  }

  zoom(factor) {
    const { distance } = this.homeView;
    this.distance = Math.min(20 * distance, Math.max(0.02 * distance, this.distance * factor));
    this.changed();
  }

  down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    if (!this.pointers.size) this.dragged = 0; // pixels: what follows is a click if this stays small
    this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
    this.spread = 0;
  }

  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const height = this.canvas.clientHeight;
    const dx = event.clientX - before[0];
    const dy = event.clientY - before[1];
    this.dragged += Math.hypot(dx, dy);
    this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
    if (this.pointers.size === 2) {
      const [a, b] = [...this.pointers.values()];
      const spread = Math.hypot(a[0] - b[0], a[1] - b[1]);
      if (this.spread) this.zoom(this.spread / spread);
      this.spread = spread;
      this.pan(dx / height / 2, dy / height / 2); // each finger reports half of the movement
    } else if (event.shiftKey || event.buttons & 6) this.pan(dx / height, dy / height);
    else this.turn((-3 * dx) / height, (3 * dy) / height);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return; // keys of the browser
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.key in arrows) {
      const [dx, dy] = arrows[event.key];
      if (event.shiftKey) this.pan(0.05 * dx, 0.05 * dy);
      else this.turn(-0.08 * dx, 0.08 * dy);
    } else if (event.key === "+" || event.key === "=") this.zoom(0.9);
    else if (event.key === "-") this.zoom(1.1);
    else if (event.key === "0") this.home();
    else return;
    event.preventDefault();
  }

  /** The camera's right, up and backward axes in world coordinates (x right, y up, z backward). */
  axes() {
    const [sa, ca, sb, cb] = [Math.sin(this.yaw), Math.cos(this.yaw), Math.sin(this.pitch), Math.cos(this.pitch)];
    return [[ca, 0, -sa], [-sa * sb, cb, -ca * sb], [sa * cb, sb, ca * cb]];
  }

  /** The column-major 4×4 matrix from world to clip coordinates. */
  matrix(tanHalf, aspect) {
    this.reach = 2 * tanHalf;
    const [right, up, back] = this.axes();
    const eye = this.target.map((value, axis) => value + this.distance * back[axis]);
    const offset = [right, up, back].map((axis) => -axis.reduce((sum, a, i) => sum + a * eye[i], 0));
    const near = 0.005 * this.homeView.distance;
    const far = 400 * this.homeView.distance;
    const [x, y] = [1 / (tanHalf * aspect), 1 / tanHalf];
    const [a, b] = [-(far + near) / (far - near), (-2 * far * near) / (far - near)];
    const columns = [0, 1, 2].map((i) => [x * right[i], y * up[i], a * back[i], -back[i]]);
    return new Float32Array([...columns.flat(), x * offset[0], y * offset[1], a * offset[2] + b, -offset[2]]);
  }
}
