// The point cloud, drawn with WebGL; the sliders only change uniforms.
import { colorOf } from "./color.js";
import { assumedCamera, keptPoints, pointsOf } from "./geometry.js";
import { Orbit } from "./orbit.js";

const MAX_POINTS = 1_500_000;
const MAX_LIVE_POINTS = 320_000; // several times per second

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

export class Cloud {
  constructor(canvas, described) {
    this.canvas = canvas;
    this.described = described; // called with the number of points shown and in total
    this.filter = { sure: 0.2, near: 0, far: Infinity, edges: true };
    this.size = 1.2;
    this.painted = "left";
    this.gl = canvas.getContext("webgl", { antialias: true, preserveDrawingBuffer: true });
    this.orbit = new Orbit(canvas, () => this.draw());
    if (this.gl) this.prepare();
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
    this.buffers = Object.fromEntries(["position", "color", "extra"].map((name) => {
      const location = gl.getAttribLocation(program, name);
      const buffer = gl.createBuffer();
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.enableVertexAttribArray(location);
      const bytes = name === "color";
      gl.vertexAttribPointer(location, 3, bytes ? gl.UNSIGNED_BYTE : gl.FLOAT, bytes, 0, 0);
      return [name, buffer];
    }));
  }

  /** Show a result; without a calibration, an assumed camera is used. */
  show(result, range) {
    this.camera = result.camera || assumedCamera(result);
    this.load(result, range, MAX_POINTS);
    const depths = this.depths();
    this.reach = [depths(0.005) * 0.98, depths(0.98) * 1.15];
    const middle = depths(0.35);
    const [cx, cy] = [(result.width - 1) / 2, (result.height - 1) / 2];
    const x = ((cx - this.camera.cx) * middle) / this.camera.fx;
    const y = ((cy - this.camera.cy) * middle) / (this.camera.fy || this.camera.fx);
    this.orbit.setHome([x, -y, -middle], 1.04 * middle);
  }

  /** Show the next frame, from where the viewer is. */
  follow(result, range) {
    this.camera = result.camera || this.camera;
    this.load(result, range, MAX_LIVE_POINTS);
    this.refilter({});
  }

  load(result, range, maxPoints) {
    this.metric = Boolean(result.camera);
    this.range = range;
    this.frame = [result.width, result.height];
    this.points = pointsOf(result, this.camera, maxPoints);
    this.upload("position", this.points.positions);
    this.upload("extra", this.points.extra);
    this.paint(this.painted);
  }

  depths() {
    const sorted = this.points.positions.filter((_, i) => i % 3 === 2).sort();
    return (share) => sorted[Math.floor(share * (sorted.length - 1))] || 1;
  }

  paint(what) {
    this.painted = what;
    if (what === "left") this.upload("color", this.points.colors);
    else {
      const painted = new Uint8Array(3 * this.points.count);
      for (let i = 0; i < this.points.count; i += 1) painted.set(colorOf(this.points.extra[3 * i + 2], this.range), 3 * i);
      this.upload("color", painted);
    }
    this.draw();
  }

  upload(name, data) {
    if (!this.gl) return;
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, this.buffers[name]);
    this.gl.bufferData(this.gl.ARRAY_BUFFER, data, this.gl.STATIC_DRAW);
  }

  /** Change the filter, count the remaining points and draw them. */
  refilter(change) {
    Object.assign(this.filter, change);
    this.described(this.kept().length, this.points.count);
    this.draw();
  }

  kept() {
    return keptPoints(this.points, this.filter);
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
      const ground = getComputedStyle(canvas).backgroundColor.match(/\d+/g).map((level) => level / 255);
      gl.clearColor(ground[0], ground[1], ground[2], 1);
      gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
      // In the initial view, the image just fits the canvas in its tighter dimension.
      const aspect = width / height;
      const tan = (0.5 / this.camera.fx) * Math.max(this.frame[1], this.frame[0] / aspect);
      gl.uniformMatrix4fv(this.uniform.matrix, false, this.orbit.matrix(tan, aspect));
      const { sure, near, far, edges } = this.filter;
      gl.uniform4f(this.uniform.keep, sure, near, Math.min(far, 1e30), edges ? 0.5 : -1);
      gl.uniform1f(this.uniform.pointScale, (this.size * this.points.step * height) / (2 * tan * this.camera.fx));
      gl.drawArrays(gl.POINTS, 0, this.points.count);
      canvas.dataset.view = [this.orbit.yaw, this.orbit.pitch, this.orbit.distance].map((v) => v.toFixed(4)).join(" ");
    });
  }
}
