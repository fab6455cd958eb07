// Requests of the page, which uses only the public HTTP API.
import { readNpz } from "./npz.js";

// Relative to the page, which may be at any path of a reverse proxy.
const API = "api/v1";
const TOKEN = `token of ${location.pathname}`; // several servers may be at one address
let token = "";
// What the page calls the options that error messages name as the HTTP API does (web/errors.py).
const PAGE_WORDS = [
  ["the part calib_right", "“Second file” in the calibration options"],
  ["the part calib", "a calibration"],
  ["unit=mm, cm or m", "“Unit of length” in the calibration options"],
  ["rectified=true", "“Already rectified” in the calibration options"],
  ["resized=true", "“Resized since the calibration” in the calibration options"],
];

export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Take the token from the fragment of the URL, which browsers never send to a server. */
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(TOKEN, given);
    history.replaceState(null, "", location.pathname);
  }
  token = sessionStorage.getItem(TOKEN) || "";
  return token;
}

export function setToken(value) {
  token = value;
  sessionStorage.setItem(TOKEN, value);
}

/** A header has bytes, which JavaScript writes as Latin-1: here those of UTF-8. */
const bytesOf = (text) => String.fromCharCode(...new TextEncoder().encode(text));
const authorization = () => (token ? { Authorization: `Bearer ${bytesOf(token)}` } : {});
const unreachable = () => new ApiError(0, "unreachable", "The server does not answer.");

async function get(path, options) {
  try {
    return await fetch(path, options);
  } catch {
    throw unreachable();
  }
}

export async function listModels() {
  const response = await get(`${API}/models`, { headers: authorization() });
  const content = await response.json();
  if (!response.ok) throw new ApiError(response.status, content.code, content.message);
  return content;
}

/** Send a request of the live session, and fail as the others do. */
async function live(path, query, method = "GET") {
  const response = await get(`${API}/live${path}?${new URLSearchParams(query)}`, { method, headers: authorization() });
  if (response.ok) return response;
  const { code, message } = await response.json();
  throw new ApiError(response.status, code, message);
}

/** Wait for a version later than `after`: the facts, the bytes of a frame, and when they began to arrive. */
export async function liveView(after) {
  const response = await live("/view", { after });
  const received = performance.now();
  const bytes = new Uint8Array(await response.arrayBuffer());
  const end = bytes.indexOf(10);
  return { facts: JSON.parse(new TextDecoder().decode(bytes.subarray(0, end))), body: bytes.subarray(end + 1), received };
}

export const liveControl = async (change) => (await live("", change, "POST")).json();

/** A ZIP file of every output, and its name. */
export async function liveSnapshot() {
  const response = await live("/result", {});
  const name = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition"))[1];
  return [await response.blob(), name];
}

/** A file of the example pair. */
export async function exampleFile(name) {
  const response = await get(`page/motorcycle/${name}`);
  if (!response.ok) throw new ApiError(response.status, "example", "The example pair is not available.");
  return new File([await response.blob()], name);
}

export async function colors() {
  return (await get("page/colors.json")).json();
}

/**
 * Match a pair; `onSent(share)` is called during the upload.
 * Uses XMLHttpRequest, because fetch does not report the progress of uploads.
 */
export function match(files, query, signal, onSent) {
  const form = new FormData();
  for (const part of ["left", "right", "calib", "calib_right"]) if (files[part]) form.append(part, files[part]);
  const request = new XMLHttpRequest();
  request.open("POST", `${API}/disparity?${new URLSearchParams({ ...query, format: "arrays" })}`);
  request.responseType = "arraybuffer";
  for (const [name, value] of Object.entries(authorization())) request.setRequestHeader(name, value);
  request.upload.onprogress = (event) => onSent(event.loaded / event.total);
  return new Promise((resolve, reject) => {
    request.onerror = () => reject(unreachable());
    request.onabort = () => reject(new ApiError(0, "cancelled", "Cancelled."));
    request.onload = () => {
      if (request.status !== 200) reject(readProblem(request));
      else resolve(readResult(request));
    };
    signal.addEventListener("abort", () => request.abort());
    request.send(form);
  });
}

function readProblem(request) {
  try {
    const problem = JSON.parse(new TextDecoder().decode(request.response));
    const wait = request.getResponseHeader("Retry-After");
    const again = request.status === 503 && wait ? ` Try again in ${wait} s.` : "";
    const message = PAGE_WORDS.reduce((text, [theirs, ours]) => text.replaceAll(theirs, ours), problem.message);
    return new ApiError(request.status, problem.code, message + again);
  } catch {
    return new ApiError(request.status, "unreadable", `The server responded with status ${request.status}.`);
  }
}

function readResult(request) {
  const arrays = readNpz(request.response);
  const [height, width] = arrays.disparity.shape;
  const timing = request.getResponseHeader("Server-Timing") || "";
  return {
    width,
    height,
    disparity: arrays.disparity.data,
    confidence: arrays.confidence.data,
    left: arrays.left.data,
    occlusion: arrays.occlusion ? arrays.occlusion.data : null,
    camera: JSON.parse(request.getResponseHeader("Aanet-Camera")),
    warnings: JSON.parse(request.getResponseHeader("Aanet-Warnings")),
    model: request.getResponseHeader("Aanet-Model"),
    engine: request.getResponseHeader("Aanet-Engine"),
    seconds: Number((/match;dur=([\d.]+)/.exec(timing) || [0, 0])[1]) / 1000,
  };
}
