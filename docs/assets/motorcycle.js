// The 3D view of the site: the viewer of `aanet serve` on files that were made when the site was built.
import { Cloud } from "./viewer/cloud.js";
import { setRamp, valueRange } from "./viewer/color.js";
import { readNpz } from "./viewer/npz.js";

const FILES = new URL("motorcycle/", import.meta.url);
const $ = (id) => document.getElementById(id);

async function load(name) {
  const response = await fetch(new URL(name, FILES));
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  return response;
}

/** The pixels of an image, RGB without alpha. */
async function pixels(blob) {
  const image = await createImageBitmap(blob);
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, image.width, image.height);
  return data.filter((_, i) => i % 4 !== 3);
}

/** The result as the viewer takes it. */
async function result() {
  const [facts, maps, left] = await Promise.all([
    load("facts.json").then((response) => response.json()),
    load("maps.npz").then((response) => response.arrayBuffer()).then(readNpz),
    load("left.jpg").then((response) => response.blob()).then(pixels),
  ]);
  setRamp(facts.ramp);
  const [height, width] = maps.confidence.shape;
  // 256 × pixels in two bytes, the lower one first; 0 is unknown.
  const bytes = maps.disparity.data;
  const disparity = Float32Array.from({ length: width * height }, (_, i) => (bytes[2 * i] + 256 * bytes[2 * i + 1]) / 256 || NaN);
  const confidence = Float32Array.from(maps.confidence.data, (level) => level / 255);
  return { width, height, disparity, confidence, left, camera: facts.camera };
}

async function start() {
  const cloud = new Cloud($("cloud"), (shown, all) => {
    $("cloud-count").textContent = `${shown.toLocaleString("en")} of ${all.toLocaleString("en")} points`;
  });
  if (!cloud.gl) throw new Error("This browser has no WebGL.");
  const shown = await result();
  cloud.show(shown, valueRange(shown.disparity));
  const refilter = () => cloud.refilter({ sure: Number($("cloud-sure").value), edges: $("cloud-edges").checked });
  $("cloud-sure").addEventListener("input", refilter);
  $("cloud-edges").addEventListener("change", refilter);
  $("cloud-paint").addEventListener("change", () => cloud.paint($("cloud-paint").value));
  $("cloud-home").addEventListener("click", () => cloud.orbit.home());
  refilter();
}

start().catch((error) => { $("cloud-count").textContent = `The points cannot be shown: ${error.message}`; });
