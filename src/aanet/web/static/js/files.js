// Writing the file formats of `docs/conventions.md` in the browser.

const LARGEST = 65535;
/** In the unit of the file; 0 is kept for what is unknown. */
const stored = (value, scale) => Math.max(Math.round(value * scale), 1);

/** KITTI's 16-bit PNG: 256 × pixels, 0 where unknown. */
export function encodeDisparityPng(values, width, height) {
  return encodePng16(width, height, (i) => {
    if (!Number.isFinite(values[i])) return 0;
    if (values[i] < 0 || stored(values[i], 256) > LARGEST) {
      throw new Error("A 16-bit PNG can only store disparities from 0 to 255.99 px; use PFM or NPY instead.");
    }
    return stored(values[i], 256);
  });
}

/** A 16-bit PNG of whole millimeters, 0 where unknown or beyond 65.535 m, as in ROS. */
export function encodeDepthPng(meters, width, height) {
  return encodePng16(width, height, (i) => (stored(meters[i], 1000) <= LARGEST ? stored(meters[i], 1000) : 0));
}

/** A 16-bit grayscale PNG with the value `pick(i)` in every pixel i. */
async function encodePng16(width, height, pick) {
  const rows = new Uint8Array(height * (1 + 2 * width)); // each row begins with its filter type, 0 for none
  for (let y = 0, at = 0; y < height; y += 1) {
    at += 1;
    for (let x = 0; x < width; x += 1, at += 2) {
      const value = pick(y * width + x);
      rows[at] = value >> 8;
      rows[at + 1] = value & 255;
    }
  }
  const header = new Uint8Array(13);
  const view = new DataView(header.buffer);
  view.setUint32(0, width);
  view.setUint32(4, height);
  header.set([16, 0, 0, 0, 0], 8); // 16-bit grayscale
  const deflated = await new Response(
    new Blob([rows]).stream().pipeThrough(new CompressionStream("deflate")),
  ).arrayBuffer();
  const signature = new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10]);
  const chunks = [chunk("IHDR", header), chunk("IDAT", new Uint8Array(deflated)), chunk("IEND", new Uint8Array())];
  return new Blob([signature, ...chunks], { type: "image/png" });
}

function chunk(kind, data) {
  const bytes = new Uint8Array(12 + data.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, data.length);
  bytes.set(new TextEncoder().encode(kind), 4);
  bytes.set(data, 8);
  view.setUint32(8 + data.length, crc32(bytes.subarray(4, 8 + data.length)));
  return bytes;
}

const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});

function crc32(bytes) {
  let value = 0xffffffff;
  for (const byte of bytes) value = CRC[(value ^ byte) & 255] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

/** Portable float map: little-endian, bottom row first, infinity where unknown. */
export function encodePfm(values, width, height) {
  const data = new DataView(new ArrayBuffer(4 * width * height));
  for (let y = 0, at = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1, at += 4) {
      const value = values[(height - 1 - y) * width + x];
      data.setFloat32(at, Number.isFinite(value) ? value : Infinity, true);
    }
  }
  return new Blob([`Pf\n${width} ${height}\n-1.0\n`, data]);
}

/** NumPy's .npy file, float32. */
export function encodeNpy(values, width, height) {
  let header = `{'descr': '<f4', 'fortran_order': False, 'shape': (${height}, ${width}), }`;
  header = header.padEnd(Math.ceil((11 + header.length) / 64) * 64 - 11) + "\n"; // data begins at a multiple of 64
  const start = new Uint8Array([0x93, 78, 85, 77, 80, 89, 1, 0, header.length & 255, header.length >> 8]);
  return new Blob([start, header, values]);
}

/** Colored points as binary PLY: positions [3N], colors [3N] and the indices of the points to write. */
export function encodePly(positions, colors, kept) {
  const header = [
    "ply",
    "format binary_little_endian 1.0",
    "comment meters in the frame of the left camera: x right, y down, z forward",
    `element vertex ${kept.length}`,
    ...["x", "y", "z"].map((name) => `property float ${name}`),
    ...["red", "green", "blue"].map((name) => `property uchar ${name}`),
    "end_header\n",
  ].join("\n");
  const data = new DataView(new ArrayBuffer(15 * kept.length));
  kept.forEach((index, vertex) => {
    for (let axis = 0; axis < 3; axis += 1) {
      data.setFloat32(15 * vertex + 4 * axis, positions[3 * index + axis], true);
      data.setUint8(15 * vertex + 12 + axis, colors[3 * index + axis]);
    }
  });
  return new Blob([header, data]);
}

/** Download a file. */
export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
