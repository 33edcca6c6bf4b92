// The map: rows, the numbers of clusters over them, and rings around those that are pointed at.

import { onScreen, resized, zoomOf } from "./camera.js";
import { toRgb } from "./colours.js";
import { drawDiscs, dress, radiusIn } from "./discs.js";
import { byId, themed } from "./dom.js";
import { k, labels, n, xs, ys } from "./rows.js";
import { change, state, whenever } from "./state.js";
import { counted } from "./words.js";

const MOST_NUMBERS = 60;
const SHARPEST = n > 50000 ? 1.5 : 3; // pixels a CSS pixel

export const canvas = byId("canvas");
const stage = byId("stage");
const paint = canvas.getContext("2d");
const anchors = middles();
let image = null; // the rows, without what lies over them
let waiting = null; // what the next frame has to draw

/** Of every cluster the row next to its median, -1 if it is empty. */
function middles() {
  const members = Array.from({ length: k + 1 }, () => []);
  for (let row = 0; row < n; row++) members[labels[row]].push(row);
  const median = (rows, values) => Uint16Array.from(rows, (row) => values[row]).sort()[rows.length >> 1];
  return members.slice(0, k).map((rows) => {
    const [x, y] = [median(rows, xs), median(rows, ys)];
    const far = (row) => (xs[row] - x) ** 2 + (ys[row] - y) ** 2;
    return rows.reduce((one, other) => (one < 0 || far(other) < far(one) ? other : one), -1);
  });
}

// ------------------------------------------------------------------------------------------------------------- frames

/** Draw in the next frame, once however often it is asked for; the rows only if they have changed. */
function redraw({ rows }) {
  if (state.camera === null) return;
  if (waiting === null) requestAnimationFrame(draw);
  waiting = { rows: rows || (waiting !== null && waiting.rows) };
}

function draw() {
  const start = performance.now();
  const ratio = canvas.width / state.camera.width;
  if (waiting.rows) drawDiscs(image, state.camera, ratio, toRgb(themed("--raised")));
  waiting = null;
  paint.putImageData(image, 0, 0);
  paint.setTransform(ratio, 0, 0, ratio, 0, 0);
  if (state.colouring === "cluster" && k <= MOST_NUMBERS) drawNumbers();
  for (const row of new Set([...state.listed, state.marked, state.hovered])) if (row >= 0) drawRing(row);
  canvas.dataset.zoom = zoomOf(state.camera).toFixed(4);
  performance.measure("draw", { start });
}

/** Each cluster's number, so that colour is not all there is to go by. */
function drawNumbers() {
  Object.assign(paint, { font: "600 15px system-ui, sans-serif", textAlign: "center", textBaseline: "middle" });
  Object.assign(paint, { strokeStyle: themed("--raised"), lineJoin: "round", lineWidth: 4 });
  paint.fillStyle = themed("--ink");
  anchors.forEach((anchor, label) => {
    if (anchor < 0 || (state.cluster !== null && state.cluster !== label)) return;
    const { x, y } = onScreen(state.camera, anchor);
    paint.strokeText(String(label), x, y);
    paint.fillText(String(label), x, y);
  });
}

function drawRing(row) {
  const { x, y } = onScreen(state.camera, row);
  paint.beginPath();
  paint.arc(x, y, radiusIn(state.camera) + 3, 0, 2 * Math.PI);
  Object.assign(paint, { lineWidth: 2, strokeStyle: themed("--ink") });
  paint.stroke();
}

// ----------------------------------------------------------------------------------------------------------- its size

function resize() {
  const { clientWidth: width, clientHeight: height } = stage;
  if (width < 80 || height < 80) return; // not laid out
  const ratio = Math.min(window.devicePixelRatio || 1, SHARPEST);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  image = paint.createImageData(canvas.width, canvas.height);
  change({ camera: resized(state.camera, width, height) });
}

export function startMap() {
  const told = `Map of ${counted(n, "row")} in ${counted(k, "cluster")}; the clusters are described below`;
  canvas.setAttribute("aria-label", told);
  whenever(["theme", "colouring", "fade", "cluster", "matches"], () => {
    dress();
    redraw({ rows: true });
  });
  whenever(["camera"], () => redraw({ rows: true }));
  whenever(["hovered", "marked", "listed"], () => redraw({ rows: false }));
  dress();
  resize();
  new ResizeObserver(resize).observe(stage);
}
