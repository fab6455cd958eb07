// A live source. The page asks for the next frame when it has drawn the last one, so that no queue can grow;
// a hidden page draws nothing and therefore asks for nothing.
import * as api from "./api.js";
import { valueRange } from "./color.js";
import { save } from "./files.js";
import { depthRange, disparityOf } from "./geometry.js";

const $ = (id) => document.getElementById(id);
const RETRY_MS = 1000;
const LATEST_WEIGHT = 0.2; // of the latest frame in the running means
const MARGIN = 0.25; // of the range of a frame, by which the color scale is wider on either side

const duration = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

export class Live {
  /** `draw(result, range)` shows a frame; `view()` is the name of what is shown. */
  constructor(draw, view) {
    Object.assign(this, { draw, view, version: 0, range: null, result: null, status: null, fps: null, latency: null });
    $("live").hidden = false;
    $("live-pause").addEventListener("click", () => this.control({ paused: !this.status.paused }));
    $("live-record").addEventListener("click", () => this.control({ recording: !this.status.recording }));
    $("live-snapshot").addEventListener("click", () => this.snapshot());
    $("live-fit").addEventListener("click", () => this.fit());
    for (const id of ["live-low", "live-high"]) $(id).addEventListener("change", () => this.readRange());
  }

  async run() {
    for (;;) {
      try {
        await this.next();
        await new Promise(requestAnimationFrame);
      } catch (error) {
        this.tell(error.message);
        await new Promise((done) => { setTimeout(done, RETRY_MS); });
      }
    }
  }

  /** Wait for what is next, and show it. */
  async next() {
    const { facts, body, received } = await api.liveView(this.version);
    this.version = facts.version < this.version ? 0 : facts.version; // a server that was started again counts anew
    if (facts.maps) {
      const first = !this.result;
      this.result = { ...await decode(facts, body), warnings: facts.live.warnings };
      this.range ||= facts.live.color_range;
      this.draw(this.result, this.range);
      if (first) this.showRange();
      this.measure(facts.live.age, received);
    }
    this.show(facts.live);
  }

  /** Update the frames per second, and the time from the camera to the screen. */
  measure(age, received) {
    const now = performance.now();
    const mean = (before, latest) => (before === null ? latest : (1 - LATEST_WEIGHT) * before + LATEST_WEIGHT * latest);
    if (this.drawn) this.fps = 1000 / mean(this.fps && 1000 / this.fps, Math.max(now - this.drawn, 1));
    // The first frame may have been matched long ago, when somebody watched last.
    if (this.drawn) this.latency = mean(this.latency, 1000 * age + now - received);
    this.drawn = now;
  }

  show(status) {
    if (this.status && this.status.paused && !status.paused) [this.drawn, this.fps, this.latency] = [null, null, null];
    this.status = status;
    const still = status.paused || status.problem;
    $("live-fps").textContent = still || !this.fps ? "–" : this.fps.toFixed(1);
    $("live-latency").textContent = still || this.latency === null ? "–" : duration(this.latency);
    $("live-matching").textContent = duration(1000 * status.seconds);
    $("live-pause").textContent = status.paused ? "Continue" : "Pause";
    $("live-record").textContent = status.recording ? "Stop recording" : "Record";
    $("live-record").setAttribute("aria-pressed", String(Boolean(status.recording)));
    this.tell(status.problem || status.recording_problem);
    const words = status.recording ? `Recording ${status.recording} on the server.`
      : status.recorded ? `${status.recorded} is complete, on the server.` : "";
    if ($("live-status").textContent !== words) $("live-status").textContent = words;
  }

  tell(problem) {
    if ($("live-problem").textContent !== (problem || "")) $("live-problem").textContent = problem || "";
    $("live-problem").hidden = !problem;
  }

  async control(change) {
    try {
      this.show(await api.liveControl(change));
    } catch (error) {
      this.tell(error.message);
    }
  }

  async snapshot() {
    $("live-snapshot").disabled = true;
    try {
      save(...await api.liveSnapshot());
    } catch (error) {
      this.tell(error.message);
    } finally {
      $("live-snapshot").disabled = false;
    }
  }

  /** Take the range of the colors from the frame that is shown. */
  fit() {
    if (!this.result) return;
    const [low, high] = valueRange(this.result.disparity);
    const margin = MARGIN * (high - low);
    this.setRange([Math.max(low - margin, 0), high + margin]);
  }

  /** Write the range into the fields, in the unit of the view. */
  showRange() {
    if (!this.result) return;
    const meters = this.view() === "depth";
    const ends = meters ? depthRange(this.result.camera, this.range) : this.range;
    $("live-unit").textContent = meters ? "m" : "px";
    [$("live-low").value, $("live-high").value] = ends.map((end) => Number(end.toPrecision(3)));
  }

  readRange() {
    const ends = [$("live-low"), $("live-high")].map((field) => Number(field.value));
    if (this.view() === "depth" && ends[0] > 0) this.setRange(ends.reverse().map((depth) => disparityOf(this.result.camera, depth)));
    else this.setRange(ends);
  }

  setRange([low, high]) {
    if (low >= 0 && high > low) {
      this.range = [low, high];
      this.draw(this.result, this.range);
    }
    this.showRange();
  }
}

/** A result as of a request, from the format of `web/live_view.py`. */
async function decode(facts, body) {
  const { width, height, step } = facts;
  const size = width * height;
  const packed = new Blob([body.subarray(facts.left, facts.left + facts.maps)]);
  const unpacked = packed.stream().pipeThrough(new DecompressionStream("deflate"));
  const planes = new Uint8Array(await new Response(unpacked).arrayBuffer());
  const [disparity, confidence] = [new Float32Array(size), new Float32Array(size)];
  for (let i = 0, units = 0, sure = 0; i < size; i += 1) {
    units = (units + planes[i] + (planes[size + i] << 8)) & 65535;
    sure = (sure + planes[2 * size + i]) & 255;
    disparity[i] = units ? (units - 1) * step : NaN;
    confidence[i] = sure / 255;
  }
  const left = await decodeLeft(new Blob([body.subarray(0, facts.left)], { type: "image/jpeg" }), width, height);
  return { ...facts, disparity, confidence, left, occlusion: null };
}

/** Draw the left image, and return its colors, RGB after RGB. */
async function decodeLeft(jpeg, width, height) {
  const canvas = $("live-left");
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const bitmap = await createImageBitmap(jpeg);
  context.drawImage(bitmap, 0, 0);
  bitmap.close();
  const { data } = context.getImageData(0, 0, width, height);
  const colors = new Uint8Array(3 * width * height);
  for (let i = 0, j = 0; i < data.length; i += 4, j += 3) {
    colors[j] = data[i];
    colors[j + 1] = data[i + 1];
    colors[j + 2] = data[i + 2];
  }
  return colors;
}
