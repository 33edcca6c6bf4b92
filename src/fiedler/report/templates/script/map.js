// The map: rows, the numbers of clusters, and rings around selected rows.

import { resized, toScreen, zoomOf } from "./camera.js";
import { toRgb } from "./colours.js";
import { byId, themeColour } from "./dom.js";
import { countNoun } from "./format.js";
import { drawPoints, pointRadius, updatePoints } from "./points.js";
import { k, labels, n, xs, ys } from "./rows.js";
import { onChange, setState, state } from "./state.js";

const MAX_NUMBERED_CLUSTERS = 60;
const SQUARE_BITS = 11; // coordinates have 16 bits: 32 x 32 squares
const SQUARES = 1 << 10; // more than there are on a side
const MAX_PIXEL_RATIO = n > 50000 ? 1.5 : 3; // pixels per CSS pixel

export const canvas = byId("canvas");
const stage = byId("stage");
const context = canvas.getContext("2d");
const anchors = densestRows();
let image = null; // the rows, without what is drawn over them
let pending = null; // what the next frame has to draw

/** A row in the densest part of each cluster, where its number is written; -1 if the cluster is empty. */
function densestRows() {
  const members = Array.from({ length: k + 1 }, () => []);
  for (let row = 0; row < n; row++) members[labels[row]].push(row);
  return members.slice(0, k).map(densestRow);
}

/** The row nearest to the mean of those in the square, and its neighbours, that contain the most rows. */
function densestRow(rows) {
  if (!rows.length) return -1;
  const at = (row) => [(xs[row] >> SQUARE_BITS) + 1, (ys[row] >> SQUARE_BITS) + 1]; // with a margin of one square
  const counts = new Map();
  for (const row of rows) {
    const [column, line] = at(row);
    for (let i = -1; i <= 1; i++) {
      for (let j = -1; j <= 1; j++) {
        const square = (column + i) * SQUARES + line + j;
        counts.set(square, (counts.get(square) ?? 0) + 1);
      }
    }
  }
  const [best] = [...counts].reduce((top, entry) => (entry[1] > top[1] ? entry : top));
  const isNear = (row) => {
    const [column, line] = at(row);
    return Math.abs(column - Math.floor(best / SQUARES)) <= 1 && Math.abs(line - (best % SQUARES)) <= 1;
  };
  const near = rows.filter(isNear);
  const mean = (values) => near.reduce((sum, row) => sum + values[row], 0) / near.length;
  const [x, y] = [mean(xs), mean(ys)];
  const sqDistance = (row) => (xs[row] - x) ** 2 + (ys[row] - y) ** 2;
  return near.reduce((closest, row) => (sqDistance(row) < sqDistance(closest) ? row : closest));
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
  onChange(["theme", "colouring", "level", "fade", "cluster", "matches"], () => {
    updatePoints();
    redraw({ rows: true });
  });
  onChange(["camera"], () => redraw({ rows: true }));
  onChange(["hovered", "marked", "listed"], () => redraw({ rows: false }));
  updatePoints();
  resize();
  new ResizeObserver(resize).observe(stage);
}
