// Reading the vertices of a binary PLY file.

const READERS = {
  char: ["getInt8", 1], uchar: ["getUint8", 1], short: ["getInt16", 2], ushort: ["getUint16", 2],
  int: ["getInt32", 4], uint: ["getUint32", 4], float: ["getFloat32", 4], double: ["getFloat64", 8],
  int8: ["getInt8", 1], uint8: ["getUint8", 1], int16: ["getInt16", 2], uint16: ["getUint16", 2],
  int32: ["getInt32", 4], uint32: ["getUint32", 4], float32: ["getFloat32", 4], float64: ["getFloat64", 8],
};
const GRAY = 190; // of points without a color
const MAX_HEADER = 65536; // bytes

/** Return positions [3N] and RGB colors [3N]. */
export function readPly(buffer) {
  const start = new TextDecoder("latin1").decode(new Uint8Array(buffer, 0, Math.min(buffer.byteLength, MAX_HEADER)));
  const header = /^ply\r?\n[^]*?\nend_header\r?\n/.exec(start);
  if (!header) throw new Error("This is not a PLY file.");
  const format = /^format (\S+)/m.exec(header[0]);
  const order = { binary_little_endian: true, binary_big_endian: false }[format && format[1]];
  if (order === undefined) throw new Error("Only binary PLY files can be read.");
  const { count, fields, size } = vertexLayout(header[0]);
  const view = new DataView(buffer, header[0].length);
  if (view.byteLength < count * size) throw new Error("The PLY file is incomplete.");
  const positions = new Float32Array(3 * count);
  const colors = new Uint8Array(3 * count).fill(GRAY);
  const fill = (target, names) => names.forEach((name, axis) => {
    if (!fields[name]) return;
    const { read, offset } = fields[name];
    for (let i = 0; i < count; i += 1) target[3 * i + axis] = view[read](i * size + offset, order);
  });
  fill(positions, ["x", "y", "z"]);
  fill(colors, ["red", "green", "blue"]);
  return { positions, colors };
}

/** How many vertices there are, and where in the bytes of one its properties are. */
function vertexLayout(header) {
  const first = /^element (\S+) (\d+)\r?\n((?:(?:property|comment) .*\n)*)/m.exec(header);
  if (!first || first[1] !== "vertex") throw new Error("The PLY file does not begin with vertices.");
  const fields = {};
  let size = 0;
  for (const [, kind, name] of first[3].matchAll(/^property (\S+) (\S+)/gm)) {
    if (!READERS[kind]) throw new Error(`The PLY file has a property of the type ${kind}, which vertices cannot have here.`);
    const [read, bytes] = READERS[kind];
    fields[name] = { read, offset: size };
    size += bytes;
  }
  for (const axis of ["x", "y", "z"]) if (!fields[axis]) throw new Error(`The vertices of the PLY file have no ${axis}.`);
  return { count: Number(first[2]), fields, size };
}
