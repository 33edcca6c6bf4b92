// The view of the map: screen = scale * layout + (left, top) in CSS pixels, with the y axis of the layout pointing up.
// A camera is an immutable value; every movement returns a new one.

import { xs, ys } from "./rows.js";

const MARGIN = 28; // CSS pixels
const MIN_ZOOM = 0.5; // relative to the view of all rows
const MAX_ZOOM = 400;

const maximum = (values) => values.reduce((largest, value) => Math.max(largest, value), 1);
const extent = { width: maximum(xs), height: maximum(ys) };

/** A view of all rows in a window of this size. */
export function fitAll(width, height) {
  const fit = Math.min((width - 2 * MARGIN) / extent.width, (height - 2 * MARGIN) / extent.height);
  const [left, top] = [(width - fit * extent.width) / 2, (height + fit * extent.height) / 2];
  return { width, height, fit, scale: fit, left, top };
}

/** The same view in a window of another size. */
export function resized(camera, width, height) {
  const next = fitAll(width, height);
  if (!camera || zoomOf(camera) === 1) return next;
  const [dx, dy] = [(width - camera.width) / 2, (height - camera.height) / 2];
  return { ...moved(camera, dx, dy), width, height, fit: next.fit };
}

export const moved = (camera, dx, dy) => ({ ...camera, left: camera.left + dx, top: camera.top + dy });

/** The view enlarged by a factor around the point (x, y) of the screen. */
export function zoomed(camera, x, y, factor) {
  const scale = Math.min(Math.max(camera.scale * factor, camera.fit * MIN_ZOOM), camera.fit * MAX_ZOOM);
  const ratio = scale / camera.scale;
  return { ...camera, scale, left: x - (x - camera.left) * ratio, top: y - (y - camera.top) * ratio };
}

export const zoomedAtCentre = (camera, factor) => zoomed(camera, camera.width / 2, camera.height / 2, factor);

/** The view centred on a row, at least at the given zoom. */
export function centredOn(camera, row, zoom) {
  const scale = Math.max(camera.scale, zoom * camera.fit);
  return { ...camera, scale, left: camera.width / 2 - scale * xs[row], top: camera.height / 2 + scale * ys[row] };
}

export const zoomOf = (camera) => camera.scale / camera.fit;

/** From a row to its position on the screen, and from the screen to coordinates of the layout. */
export const toScreen = ({ scale, left, top }, row) => ({ x: scale * xs[row] + left, y: top - scale * ys[row] });
export const toLayout = ({ scale, left, top }, { x, y }) => ({ x: (x - left) / scale, y: (top - y) / scale });
