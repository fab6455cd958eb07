// The page: connects the form, requests, views and downloads.
import * as api from "./api.js";
import { setRamp, valueRange } from "./color.js";
import { Cloud } from "./cloud.js";
import { FILES } from "./downloads.js";
import { save } from "./files.js";
import { Live } from "./live.js";
import { PairForm } from "./pair.js";
import { Picture } from "./picture.js";
import { Progress } from "./progress.js";
import { Ruler } from "./ruler.js";
import { startTheme } from "./theme.js";

const $ = (id) => document.getElementById(id);
const state = { models: [], result: null, range: null, sgbm: null, sent: null, abort: null, ramp: null, retry: null, live: null };
const RETRY_MS = 2000;
const pair = new PairForm(() => ready());
const picture = new Picture();
const progress = new Progress();
const cloud = new Cloud($("cloud"), (shown, all) => {
  $("count").textContent = `${shown.toLocaleString("en")} of ${all.toLocaleString("en")} points`;
});
const ruler = new Ruler(picture, cloud);

/** Only one request at a time can be started. */
function enableButtons() {
  $("go").disabled = !pair.complete || Boolean(state.abort);
  $("swap-again").disabled = Boolean(state.abort);
  $("swap-again").textContent = state.abort ? "Matching …" : "Swap and match again";
}

function ready() {
  enableButtons();
  $("swap").hidden = !pair.files.left && !pair.files.right;
  if (!state.abort) progress.setStatus(pair.complete ? "Ready." : "Choose a left and a right image.");
}

function fail(error) {
  $("error").textContent = error.message;
  $("error").hidden = false;
  $("error").scrollIntoView({ block: "nearest" }); // on a phone, the result is far below the form
  if (error.message.includes("calibration options")) $("calib-options").open = true;
  if (error.code === "unreachable") reconnect();
  if (error.status === 401) {
    $("token-field").hidden = false;
    $("token").focus();
  }
}

async function start() {
  startTheme($("theme"), () => cloud.draw());
  if (!cloud.gl) $("count").textContent = "This browser has no WebGL and cannot show points; the PLY file can still be downloaded.";
  $("token").value = api.takeToken();
  await loadModels();
}

/** Try again until the server answers, then remove the message that it does not. */
function reconnect() {
  clearTimeout(state.retry);
  const shown = $("error").textContent;
  state.retry = setTimeout(async () => {
    if (await loadModels() && $("error").textContent === shown) $("error").hidden = true;
  }, RETRY_MS);
}

/** Load what the server offers; returns whether it answered. */
async function loadModels() {
  try {
    if (!state.ramp) setRamp(state.ramp = await api.colors());
    const { models, live } = await api.listModels();
    state.models = models;
    if (live && !state.live) startLive();
    const chosen = $("model").value;
    $("model").replaceChildren(...models.map((model) => {
      const words = { sgbm: "SGBM (classical, OpenCV)" }[model.name] || model.name;
      return new Option(words, model.name, model.default, chosen ? model.name === chosen : model.default);
    }));
    $("token-field").hidden = true;
    return true;
  } catch (error) {
    fail(error);
    return false;
  }
}

/** Show a live source instead of the form for pairs. */
function startLive() {
  for (const id of ["form", "empty", "downloads", "add-calib"]) $(id).hidden = true;
  $("how-to-calibrate").textContent = "Start aanet live with --calib to get it.";
  for (const id of ["readout", "count", "ruler", "cloud-ruler"]) $(id).setAttribute("aria-live", "off"); // they change with every frame
  document.querySelector("[name=view][value=check]").parentElement.hidden = true;
  state.live = new Live(drawLive, view);
  $("view").addEventListener("change", () => state.live.showRange());
  state.live.run();
}

function drawLive(result, range) {
  const { result: before, range: scale } = state;
  const like = before && before.width === result.width && before.height === result.height;
  Object.assign(state, { result, range });
  if (!like) {
    $("shown").hidden = false;
    showFacts(result);
    cloud.show(result, range);
    cloud.reach = [cloud.reach[0] / 2, cloud.reach[1] * 2]; // what comes later may be nearer or farther
    fitSliders();
  }
  if (view() === "points") cloud.follow(result, range);
  else if (like && range === scale) picture.update(result);
  else show();
  if (like) ruler.follow(result);
  else ruler.begin(result);
}

async function useExample() {
  $("error").hidden = true;
  try {
    const [left, right, calib] = await Promise.all(["left.png", "right.png", "calib.json"].map(api.exampleFile));
    pair.clearCalibration();
    pair.set({ left, right, calib });
    $("go").focus();
  } catch (error) {
    fail(error);
  }
}

const query = (model) => ({
  model, check: $("check").checked, ...($("scale").value && { scale: $("scale").value }), ...pair.options,
});

/** Run a request and show its progress; returns undefined if it failed or was cancelled. */
async function request(files, model, name) {
  if (state.abort) return undefined;
  state.abort = new AbortController();
  $("error").hidden = true;
  ready();
  progress.begin(name, state.models.find((known) => known.name === model), files, $("scale").value, $("check").checked);
  try {
    const result = await api.match(files, query(model), state.abort.signal, (share) => progress.sent(share));
    progress.end(`${name}: done in ${result.seconds.toFixed(2)} s.`);
    return result;
  } catch (error) {
    progress.end(error.code === "cancelled" ? "Cancelled." : "");
    if (error.code !== "cancelled") fail(error);
    return undefined;
  } finally {
    state.abort = null;
    enableButtons();
    loadModels();
  }
}

async function run() {
  const files = { ...pair.files };
  const result = await request(files, $("model").value, $("model").selectedOptions[0].text);
  if (!result) return;
  Object.assign(state, { result, range: valueRange(result.disparity), sgbm: null, sent: files });
  $("empty").hidden = true;
  $("shown").hidden = false;
  showFacts(result);
  cloud.show(result, state.range);
  fitSliders();
  if (document.querySelector("[name=view]:checked").disabled) document.querySelector("[name=view][value=disparity]").checked = true;
  await show();
  ruler.begin(result);
  $("result").focus({ preventScroll: true });
  if (innerWidth <= 820) $("result").scrollIntoView({ block: "start" });
}

/** Match what was matched last with left and right swapped, whatever the form has now. */
function swapAndRun() {
  pair.set({ left: state.sent.right, right: state.sent.left });
  run();
}

function showWarnings(warnings) {
  $("warnings").hidden = !warnings.length;
  $("warnings").querySelector("ul").replaceChildren(...warnings.map((text) => {
    const item = document.createElement("li");
    item.textContent = text;
    return item;
  }));
  // The sentence is that of inference/pair_checks.py.
  $("swap-again").hidden = Boolean(state.live) || !warnings.some((text) => text.startsWith("Left and right are probably swapped"));
}

/** What needs a calibration is disabled without one, and the page says why. */
function showCalibrated(calibrated) {
  $("uncalibrated").hidden = calibrated;
  for (const each of document.querySelectorAll("[data-metric]")) each.disabled = !calibrated;
}

function showFacts(result) {
  showWarnings(result.warnings);
  showCalibrated(Boolean(result.camera));
  document.querySelector("[name=view][value=check]").disabled = !result.occlusion;
  const sgbm = $("against").querySelector("[value=sgbm]");
  sgbm.disabled = Boolean(state.live) || result.model === "sgbm" || !state.models.some((model) => model.name === "sgbm");
  if (sgbm.disabled && $("against").value === "sgbm") $("against").value = "nothing";
  const facts = {
    Matcher: result.model,
    Engine: result.engine,
    Size: `${result.width} × ${result.height}`,
    ...(!state.live && { Time: `${result.seconds.toFixed(2)} s` }),
    Camera: result.camera ? `baseline ${(100 * result.camera.baseline_m).toFixed(1)} cm` : "none (no depth in meters)",
  };
  $("facts").replaceChildren(...Object.entries(facts).map(([name, value]) => {
    const row = document.createElement("div");
    row.append(Object.assign(document.createElement("dt"), { textContent: name }));
    row.append(Object.assign(document.createElement("dd"), { textContent: value }));
    return row;
  }));
}

const view = () => document.querySelector("[name=view]:checked").value;

async function show() {
  if (!state.result) return;
  const points = view() === "points";
  $("flat").hidden = points;
  $("solid").hidden = !points;
  $("against").disabled = points;
  if (points) {
    if (state.live) cloud.follow(state.result, state.range);
    cloud.draw();
    return;
  }
  let other = $("against").value === "nothing" ? null : $("against").value;
  if (other === "sgbm") {
    state.sgbm ||= await request(state.sent, "sgbm", "SGBM");
    other = state.sgbm || null;
    if (!other) $("against").value = "nothing";
  }
  picture.show(state.result, state.range, view(), other);
}

/** Reset the depth sliders, which map 0 … 1 logarithmically to the depth range of the scene. */
function fitSliders() {
  Object.assign($("near"), { value: 0 });
  Object.assign($("far"), { value: 1 });
  slide();
}

function slide() {
  const [low, high] = cloud.reach;
  const depth = (share) => low * (high / low) ** share;
  const [from, to] = [Number($("near").value), Number($("far").value)];
  const unit = cloud.metric ? " m" : "";
  $("sure-value").textContent = Number($("sure").value).toFixed(2);
  $("near-value").textContent = depth(from).toFixed(2) + unit;
  $("far-value").textContent = depth(to).toFixed(2) + unit;
  $("size-value").textContent = Number($("size").value).toFixed(1);
  cloud.size = Number($("size").value);
  cloud.refilter({ sure: Number($("sure").value), near: depth(from), far: depth(to), edges: $("edges").checked });
}

async function download(event) {
  const kind = event.target.dataset.file;
  if (!kind) return;
  $("error").hidden = true;
  try {
    const canvas = view() === "points" ? $("cloud") : $("under");
    save(...(await FILES[kind](state.result, state.range, { cloud, canvas, view: view() })));
  } catch (error) {
    fail(error);
  }
}

$("form").addEventListener("submit", (event) => { event.preventDefault(); run(); });
$("cancel").addEventListener("click", () => state.abort && state.abort.abort());
$("token").addEventListener("change", () => { api.setToken($("token").value.trim()); $("error").hidden = true; loadModels(); });
$("swap-again").addEventListener("click", swapAndRun);
$("add-calib").addEventListener("click", () => {
  $("calib").addEventListener("change", () => $("go").focus(), { once: true });
  $("calib").click();
});
$("example").addEventListener("click", useExample);
$("example-2").addEventListener("click", async () => { await useExample(); run(); });
$("view").addEventListener("change", show);
$("against").addEventListener("change", show);
for (const id of ["sure", "near", "far", "size", "edges"]) $(id).addEventListener("input", slide);
$("paint").addEventListener("change", () => cloud.paint($("paint").value));
$("home").addEventListener("click", () => cloud.orbit.home());
$("downloads").addEventListener("click", download);
ready();
start().catch(fail);
