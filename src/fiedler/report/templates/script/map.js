// The map: rows, the numbers of clusters, and rings around selected rows.

import { resized, toScreen, zoomOf } from "./camera.js";
import { toRgb } from "./colours.js";
import { byId, themeColour } from "./dom.js";
import { countNoun } from "./format.js";
import { drawPoints, pointRadius, updatePoints } from "./points.js";
import { k, labels, n, xs, ys } from "./rows.js";
import { onChange, setState, state } from "./state.js";

const MAX_NUMBERED_CLUSTERS = 60;
const MAX_PIXEL_RATIO = n > 50000 ? 1.5 : 3; // pixels per CSS pixel

export const canvas = byId("canvas");
const stage = byId("stage");
const context = canvas.getContext("2d");
const anchors = medianRows();
let image = null; // the rows, without what is drawn over them
let pending = null; // what the next frame has to draw

/** The row nearest to the median of each cluster, -1 if the cluster is empty. */
function medianRows() {
  const members = Array.from({ length: k + 1 }, () => []);
  for (let row = 0; row < n; row++) members[labels[row]].push(row);
  const median = (rows, values) => Uint16Array.from(rows, (row) => values[row]).sort()[rows.length >> 1];
  return members.slice(0, k).map((rows) => {
    const [x, y] = [median(rows, xs), median(rows, ys)];
    const sqDistance = (row) => (xs[row] - x) ** 2 + (ys[row] - y) ** 2;
    return rows.reduce((best, row) => (best < 0 || sqDistance(row) < sqDistance(best) ? row : best), -1);
  });
}

// ------------------------------------------------------------------------------------------------------------- frames

/** Draw in the next frame, once for all requests until then; the rows only if they have changed. */
function redraw({ rows }) {
  if (state.camera === null) return;
  if (pending === null) requestAnimationFrame(draw);
  pending = { rows: rows || (pending !== null && pending.rows) };
}

function draw() {
  const start = performance.now();
  const ratio = canvas.width / state.camera.width;
  if (pending.rows) drawPoints(image, state.camera, ratio, toRgb(themeColour("--raised")));
  pending = null;
  context.putImageData(image, 0, 0);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  if (state.colouring === "cluster" && k <= MAX_NUMBERED_CLUSTERS) drawNumbers();
  for (const row of new Set([...state.listed, state.marked, state.hovered])) if (row >= 0) drawRing(row);
  canvas.dataset.zoom = zoomOf(state.camera).toFixed(4);
  performance.measure("draw", { start });
}

/** Write the number of each cluster, so that clusters can be identified without colour. */
function drawNumbers() {
  Object.assign(context, { font: "600 15px system-ui, sans-serif", textAlign: "center", textBaseline: "middle" });
  Object.assign(context, { strokeStyle: themeColour("--raised"), lineJoin: "round", lineWidth: 4 });
  context.fillStyle = themeColour("--ink");
  anchors.forEach((anchor, label) => {
    if (anchor < 0 || (state.cluster !== null && state.cluster !== label)) return;
    const { x, y } = toScreen(state.camera, anchor);
    context.strokeText(String(label), x, y);
    context.fillText(String(label), x, y);
  });
}

function drawRing(row) {
  const { x, y } = toScreen(state.camera, row);
  context.beginPath();
  context.arc(x, y, pointRadius(state.camera) + 3, 0, 2 * Math.PI);
  Object.assign(context, { lineWidth: 2, strokeStyle: themeColour("--ink") });
  context.stroke();
}

// --------------------------------------------------------------------------------------------------------------- size

function resize() {
  const { clientWidth: width, clientHeight: height } = stage;
  if (width < 80 || height < 80) return; // the page is not laid out yet
  const ratio = Math.min(window.devicePixelRatio || 1, MAX_PIXEL_RATIO);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  image = context.createImageData(canvas.width, canvas.height);
  setState({ camera: resized(state.camera, width, height) });
}

export function startMap() {
  const label = `Map of ${countNoun(n, "row")} in ${countNoun(k, "cluster")}; the clusters are described below`;
  canvas.setAttribute("aria-label", label);
  onChange(["theme", "colouring", "fade", "cluster", "matches"], () => {
    updatePoints();
    redraw({ rows: true });
  });
  onChange(["camera"], () => redraw({ rows: true }));
  onChange(["hovered", "marked", "listed"], () => redraw({ rows: false }));
  updatePoints();
  resize();
  new ResizeObserver(resize).observe(stage);
}
