// A viewer of colored points, drawn with WebGL. It needs orbit.js, ply.js and wheel.js beside it, and nothing else:
//
//   <canvas id="cloud" tabindex="0" aria-label="Point cloud" style="width: 100%; height: 400px; background: #20252f"></canvas>
//   <script type="module">
//     import { PointViewer } from "./viewer.js";
//     const viewer = new PointViewer(document.getElementById("cloud"), { wheelNeedsFocus: true });
//     await viewer.open("points.ply"); // a URL; or viewer.setPoints({ positions, colors }) with arrays of 3N numbers
//   </script>
//
// Positions are in the frame of a camera, as in the PLY files of this package: x right, y down, z forward. Drag rotates,
// Shift or the right button moves, the wheel zooms, and so do fingers and keys; `viewer.orbit.home()` resets the view.
import { Orbit } from "./orbit.js";
import { readPly } from "./ply.js";

const PICK_RADIUS = 8; // pixels around the pointer within which a point is found
// `kept` is the same test as in `keeps`.
const VERTEX = `
attribute vec3 position; attribute vec3 color; attribute vec3 extra;
uniform mat4 matrix; uniform vec4 keep; uniform float pointScale;
varying vec3 shade;
void main() {
  shade = color;
  gl_Position = matrix * vec4(position.x, -position.y, -position.z, 1.0);
  // The surface that a pixel covers grows with its depth, and so does its point.
  gl_PointSize = clamp(pointScale * position.z / gl_Position.w, 1.0, 12.0);
  bool kept = extra.x >= keep.x && position.z >= keep.y && position.z <= keep.z && extra.y >= keep.w;
  if (!kept) gl_Position = vec4(2.0, 2.0, 2.0, 1.0);
}`;
const FRAGMENT = `
precision mediump float; varying vec3 shade;
void main() { gl_FragColor = vec4(shade, 1.0); }`;

export class PointViewer {
  /**
   * With `wheelNeedsFocus`, the wheel scrolls the page until the canvas has been clicked. `drawn()` is called whenever
   * the points have been drawn. `gl` is null without WebGL.
   */
  constructor(canvas, { wheelNeedsFocus = false, drawn = () => {} } = {}) {
    Object.assign(this, { canvas, drawn, points: null, colors: null, view: null, matrix: null, size: 1.7 });
    this.filter = { sure: -1, near: 0, far: Infinity, edges: false };
    canvas.style.touchAction = "none";
    this.gl = canvas.getContext("webgl", { antialias: true, preserveDrawingBuffer: true });
    this.orbit = new Orbit(canvas, () => this.draw(), wheelNeedsFocus);
    if (this.gl) this.prepare();
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault()); // it will be restored
    canvas.addEventListener("webglcontextrestored", () => { this.prepare(); this.uploadAll(); });
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  prepare() {
    const { gl } = this;
    const program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    gl.useProgram(program);
    gl.enable(gl.DEPTH_TEST);
    this.uniform = Object.fromEntries(
      ["matrix", "keep", "pointScale"].map((name) => [name, gl.getUniformLocation(program, name)]),
    );
    this.attributes = Object.fromEntries(["position", "color", "extra"].map(
      (name) => [name, { location: gl.getAttribLocation(program, name), buffer: gl.createBuffer() }],
    ));
  }

  /** Show the points of a PLY file. */
  async open(url) {
    const response = await fetch(url);
    if (!response.ok) throw new Error(`${url} cannot be read: status ${response.status}.`);
    this.setPoints(readPly(await response.arrayBuffer()));
  }

  /**
   * Show points: positions [3N] and RGB colors [3N], and optionally `extra` [3N], whose first two numbers the filter
   * compares: confidence, and 1 on a surface or 0 at its edge. Without a `view`, one is chosen that shows all points:
   * `center` is what the viewer turns around, `spread` half the width and height of the image at depth 1, and `pitch`
   * the distance of neighbors at depth 1.
   */
  setPoints(points, view = viewOf(points.positions)) {
    this.replacePoints(points, view);
    this.orbit.setHome([view.center[0], -view.center[1], -view.center[2]], 1.04 * view.center[2]);
  }

  /** Show other points, from where the viewer is. */
  replacePoints(points, view) {
    Object.assign(this, { points, view, colors: points.colors });
    this.uploadAll();
  }

  /** Show the points in other colors, RGB [3N]. */
  setColors(colors) {
    this.colors = colors;
    this.upload("color", colors);
    this.draw();
  }

  uploadAll() {
    if (!this.points) return;
    this.upload("position", this.points.positions);
    this.upload("extra", this.points.extra);
    this.setColors(this.colors);
  }

  upload(name, data) {
    const { gl } = this;
    if (!gl) return;
    const { location, buffer } = this.attributes[name];
    if (!data) {
      gl.disableVertexAttribArray(location);
      gl.vertexAttrib3f(location, 1, 1, 0);
      return;
    }
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(location);
    const bytes = name === "color";
    gl.vertexAttribPointer(location, 3, bytes ? gl.UNSIGNED_BYTE : gl.FLOAT, bytes, 0, 0);
  }

  /** Whether a point passes the filter. */
  keeps(i) {
    const { sure, near, far, edges } = this.filter;
    const { positions, extra } = this.points;
    const z = positions[3 * i + 2];
    return z >= near && z <= far && (!extra || (extra[3 * i] >= sure && (extra[3 * i + 1] > 0.5 || !edges)));
  }

  /** Indices of the points that pass the filter. */
  kept() {
    const kept = [];
    for (let i = 0; i < this.points.positions.length / 3; i += 1) if (this.keeps(i)) kept.push(i);
    return kept;
  }

  /** Where a position is in the drawn canvas: fractions from the upper left corner, and its distance; null if behind. */
  project(x, y, z) {
    const m = this.matrix;
    const [u, v, w] = [0, 1, 3].map((row) => m[row] * x - m[row + 4] * y - m[row + 8] * z + m[row + 12]);
    return w > 0 ? [0.5 + u / w / 2, 0.5 - v / w / 2, w] : null;
  }

  /** The index of the point that is seen at a position of the canvas (fractions), or −1 if there is none. */
  pick([u, v]) {
    if (!this.matrix) return -1;
    const { matrix: m, points: { positions }, canvas: { clientWidth, clientHeight } } = this;
    let [front, close, index] = [Infinity, PICK_RADIUS, -1];
    for (let i = 0, at = 0; at < positions.length; i += 1, at += 3) {
      const [x, y, z] = [positions[at], -positions[at + 1], -positions[at + 2]]; // as in `project`, but fast
      const w = m[3] * x + m[7] * y + m[11] * z + m[15];
      if (w <= 0 || !this.keeps(i)) continue;
      const across = (0.5 + (m[0] * x + m[4] * y + m[8] * z + m[12]) / w / 2 - u) * clientWidth;
      const down = (0.5 - (m[1] * x + m[5] * y + m[9] * z + m[13]) / w / 2 - v) * clientHeight;
      const apart = Math.hypot(across, down);
      const radius = Math.max((-this.pointScale * z) / w / 2, 2);
      const rank = w * (1 + apart / 100); // a point that is 1 % nearer may be one pixel farther from the pointer
      if (apart <= radius && rank < front) [front, index] = [rank, i]; // drawn here, in front of others
      else if (front === Infinity && apart < close) [close, index] = [apart, i];
    }
    return index;
  }

  draw() {
    const { gl, canvas } = this;
    if (!gl || !this.points || !canvas.clientWidth) return;
    cancelAnimationFrame(this.due);
    this.due = requestAnimationFrame(() => {
      const dense = Math.min(devicePixelRatio || 1, 2);
      const [width, height] = [Math.round(canvas.clientWidth * dense), Math.round(canvas.clientHeight * dense)];
      if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
      gl.viewport(0, 0, width, height);
      const ground = getComputedStyle(canvas).backgroundColor.match(/[\d.]+/g).map((level) => level / 255);
      gl.clearColor(ground[0], ground[1], ground[2], 1);
      gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
      // In the initial view, the image just fits the canvas in its tighter dimension.
      const aspect = width / height;
      const tan = Math.max(this.view.spread[1], this.view.spread[0] / aspect);
      this.matrix = this.orbit.matrix(tan, aspect);
      gl.uniformMatrix4fv(this.uniform.matrix, false, this.matrix);
      const { sure, near, far, edges } = this.filter;
      gl.uniform4f(this.uniform.keep, sure, near, Math.min(far, 1e30), edges ? 0.5 : -1);
      this.pointScale = (this.size * this.view.pitch * canvas.clientHeight) / (2 * tan);
      gl.uniform1f(this.uniform.pointScale, this.pointScale * dense);
      gl.drawArrays(gl.POINTS, 0, this.points.positions.length / 3);
      canvas.dataset.view = [this.orbit.yaw, this.orbit.pitch, this.orbit.distance].map((v) => v.toFixed(4)).join(" ");
      this.drawn();
    });
  }
}

const SAMPLE = 100_000;

/** A view of all points but a few: see `setPoints`. */
function viewOf(positions) {
  const count = positions.length / 3;
  const step = 3 * Math.ceil(count / SAMPLE);
  const [across, down, depths] = [[], [], []];
  for (let i = 0; i < positions.length; i += step) {
    const z = positions[i + 2];
    if (!(z > 0)) continue; // behind the camera
    across.push(positions[i] / z);
    down.push(positions[i + 1] / z);
    depths.push(z);
  }
  if (!depths.length) return { center: [0, 0, 1], spread: [0.5, 0.5], pitch: 0.01 };
  const at = (values, share) => values[Math.floor(share * (values.length - 1))];
  const sides = [across, down].map((values) => {
    values.sort((a, b) => a - b);
    return [at(values, 0.005), at(values, 0.995)];
  });
  depths.sort((a, b) => a - b);
  const z = at(depths, 0.35);
  const spread = sides.map(([low, high]) => Math.max((high - low) / 2, 1e-3));
  return {
    center: [...sides.map(([low, high]) => ((low + high) / 2) * z), z],
    spread,
    pitch: Math.sqrt((4 * spread[0] * spread[1]) / count),
  };
}
