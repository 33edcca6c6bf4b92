// Where the map is looked at from: screen = scale * plane + (left, top) in CSS pixels, the plane's y going up.
// A camera is a plain value; every movement makes a new one.

import { xs, ys } from "./rows.js";

const MARGIN = 28;
const FARTHEST = 0.5;
const CLOSEST = 400; // times the scale at which everything is seen

const most = (values) => values.reduce((one, other) => Math.max(one, other), 1);
const extent = { width: most(xs), height: most(ys) };

/** All rows in a window of this size. */
export function whole(width, height) {
  const fit = Math.min((width - 2 * MARGIN) / extent.width, (height - 2 * MARGIN) / extent.height);
  const [left, top] = [(width - fit * extent.width) / 2, (height + fit * extent.height) / 2];
  return { width, height, fit, scale: fit, left, top };
}

/** The same view in a window of another size. */
export function resized(camera, width, height) {
  const next = whole(width, height);
  if (!camera || zoomOf(camera) === 1) return next;
  const [dx, dy] = [(width - camera.width) / 2, (height - camera.height) / 2];
  return { ...moved(camera, dx, dy), width, height, fit: next.fit };
}

export const moved = (camera, dx, dy) => ({ ...camera, left: camera.left + dx, top: camera.top + dy });

/** Closer by a factor, the place (x, y) on the screen staying where it is. */
export function zoomed(camera, x, y, factor) {
  const scale = Math.min(Math.max(camera.scale * factor, camera.fit * FARTHEST), camera.fit * CLOSEST);
  const change = scale / camera.scale;
  return { ...camera, scale, left: x - (x - camera.left) * change, top: y - (y - camera.top) * change };
}

export const zoomedInTheMiddle = (camera, factor) => zoomed(camera, camera.width / 2, camera.height / 2, factor);

/** A row in the middle, from no farther than this. */
export function centred(camera, row, zoom) {
  const scale = Math.max(camera.scale, zoom * camera.fit);
  return { ...camera, scale, left: camera.width / 2 - scale * xs[row], top: camera.height / 2 + scale * ys[row] };
}

export const zoomOf = (camera) => camera.scale / camera.fit;

/** A row's place on the screen, and a place on the screen in the plane. */
export const onScreen = ({ scale, left, top }, row) => ({ x: scale * xs[row] + left, y: top - scale * ys[row] });
export const inPlane = ({ scale, left, top }, { x, y }) => ({ x: (x - left) / scale, y: (top - y) / scale });
