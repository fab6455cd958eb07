// The files that can be downloaded of a result.
import { paint, pickers } from "./color.js";
import { encodeDepthPng, encodeDisparityPng, encodeNpy, encodePfm, encodePly } from "./files.js";
import { depthMap } from "./geometry.js";

const asPng = (canvas) => new Promise((done) => { canvas.toBlob(done); });

/** Each returns the content and the name of a file, from the result, the range of its colors, and what is shown. */
export const FILES = {
  png16: async (r) => [await encodeDisparityPng(r.disparity, r.width, r.height), "disparity.png"],
  pfm: (r) => [encodePfm(r.disparity, r.width, r.height), "disparity.pfm"],
  npy: (r) => [encodeNpy(r.disparity, r.width, r.height), "disparity.npy"],
  depth16: async (r) => [await encodeDepthPng(depthMap(r), r.width, r.height), "depth.png"],
  depthnpy: (r) => [encodeNpy(depthMap(r), r.width, r.height), "depth.npy"],
  depthcolor: async (r, range) => {
    const canvas = document.createElement("canvas");
    paint(canvas, r.width, r.height, pickers.depth(r, range));
    return [await asPng(canvas), "depth_color.png"];
  },
  confidence: (r) => [encodeNpy(r.confidence, r.width, r.height), "confidence.npy"],
  ply: (r, range, { cloud }) => [encodePly(cloud.points.positions, cloud.points.colors, cloud.kept()), "points.ply"],
  picture: async (r, range, { canvas, view }) => [await asPng(canvas), `${view}.png`],
};
