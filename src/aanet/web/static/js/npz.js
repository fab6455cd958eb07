// Reading NumPy's .npz, a zip of .npy files, which this server stores without compression.

const KINDS = { "<f4": Float32Array, "|u1": Uint8Array, "|b1": Uint8Array };

/** Return all arrays of the file as {name: {shape, data}}. */
export function readNpz(buffer) {
  const view = new DataView(buffer);
  let end = buffer.byteLength - 22; // the end-of-directory record, which a comment may follow
  while (end >= 0 && view.getUint32(end, true) !== 0x06054b50) end -= 1;
  if (end < 0) throw new Error("not a zip file");
  const count = view.getUint16(end + 10, true);
  let at = view.getUint32(end + 16, true);
  const arrays = {};
  for (let entry = 0; entry < count; entry += 1) {
    const nameLength = view.getUint16(at + 28, true);
    const name = new TextDecoder().decode(new Uint8Array(buffer, at + 46, nameLength));
    const local = view.getUint32(at + 42, true);
    const start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    arrays[name.replace(/\.npy$/, "")] = readNpy(buffer, start);
    at += 46 + nameLength + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
  }
  return arrays;
}

function readNpy(buffer, start) {
  const view = new DataView(buffer, start);
  const wide = view.getUint8(6) > 1; // since version 2, the header length has 4 bytes instead of 2
  const length = wide ? view.getUint32(8, true) : view.getUint16(8, true);
  const from = wide ? 12 : 10;
  const header = new TextDecoder().decode(new Uint8Array(buffer, start + from, length));
  const kind = KINDS[/'descr': '([^']+)'/.exec(header)[1]];
  const shape = /'shape': \(([^)]*)\)/.exec(header)[1].split(",").filter((s) => s.trim()).map(Number);
  const size = shape.reduce((product, side) => product * side, 1);
  const first = start + from + length;
  // Copied, because a typed array must be aligned to its item size.
  return { shape, data: new kind(buffer.slice(first, first + size * kind.BYTES_PER_ELEMENT)) };
}
