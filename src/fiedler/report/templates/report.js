"use strict";
/* The report of a clustering: reads the JSON beside it and draws. Everything from data enters as text, never as markup. */
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);

// ------------------------------------------------------------------------------------------------------------ helpers

/** An element with attributes and children; strings become text. */
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") node.addEventListener("click", value);
    else if (name === "style") for (const [key, set] of Object.entries(value)) node.style.setProperty(key, set);
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS($("svg").namespaceURI, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function unpack(text, Type) {
  if (text === null) return null;
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  if (Type === Uint8Array) return bytes;
  const view = new DataView(bytes.buffer), values = new Uint16Array(bytes.length / 2);
  for (let i = 0; i < values.length; i++) values[i] = view.getUint16(2 * i, true);
  return values;
}

const count = (number) => number.toLocaleString("en");
function percent(share) {
  if (share > 0 && share < 0.001) return "< 0.1 %";
  const fine = (share > 0 && share < 0.1) || (share > 0.99 && share < 0.9995); // 99.8 % is not all
  return `${(100 * share).toFixed(fine ? 1 : 0)} %`;
}
function brief(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return typeof value === "string" ? value : JSON.stringify(value);
  if (Number.isInteger(value)) return Math.abs(value) < 10000 ? String(value) : count(value);
  const size = Math.abs(value);
  return size >= 1e6 || size < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(4)));
}

// --------------------------------------------------------------------------------------------------------------- rows

const n = data.n_rows, k = data.n_clusters;
const xs = unpack(data.rows.x, Uint16Array), ys = unpack(data.rows.y, Uint16Array);
const labels = unpack(data.rows.labels, Uint16Array); // k: in no cluster
const confidence = unpack(data.rows.confidence, Uint8Array), truth = unpack(data.rows.truth, Uint16Array);
const textPlace = data.texts && data.texts.rows ? new Map(data.texts.rows.map((row, i) => [row, i])) : null;
const thumbPlace = data.thumbnails ? new Map(data.thumbnails.rows.map((row, i) => [row, data.thumbnails.n_means + i])) : null;

const nameOf = (row) => (data.rows.ids ? data.rows.ids[row] : `Row ${row}`);
const clusterName = (label) => (label === k ? "No cluster" : `Cluster ${label}`);
const leading = (label) => (label === k ? "" : data.clusters[label].terms.slice(0, 3).map((pair) => pair[0]).join(", "));
function textOf(row) {
  if (!data.texts) return "";
  const place = textPlace ? textPlace.get(row) : row;
  return place === undefined ? "" : data.texts.values[place];
}

// ------------------------------------------------------------------------------------------------------------ colours

// Told apart by lightness as well as by hue, so that few pairs look alike to a colour-blind eye.
const PALETTE = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#7a5195", "#9a6324", "#7d9a2d",
  "#e0435f", "#4a68c8", "#c2a800", "#00a6a6", "#a8432a", "#b07ce8", "#86c440", "#f2938c", "#3c8f6a", "#c2a07a", "#8893d6"];
const NO_GROUP = "#8d939b";
const RAMP = ["#c8412b", "#e0a36a", "#9fb4c4", "#5592c4", "#2468a8"]; // of confidence, from doubtful to sure

/** The colour of a group; beyond the palette hues turn by the golden angle, and numbers on the map must help. */
function colourOf(group, last) {
  if (group === last) return NO_GROUP;
  if (group < PALETTE.length) return PALETTE[group];
  return toHex(...fromHsl((group * 137.508) % 360, 0.55, [0.42, 0.56, 0.68][group % 3]));
}
function fromHsl(hue, saturation, light) {
  const part = (shift) => {
    const turn = (shift + hue / 30) % 12, reach = saturation * Math.min(light, 1 - light);
    return Math.round(255 * (light - reach * Math.max(-1, Math.min(turn - 3, 9 - turn, 1))));
  };
  return [part(0), part(8), part(4)];
}
const toHex = (...parts) => "#" + parts.map((part) => part.toString(16).padStart(2, "0")).join("");
const fromHex = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
function ramp(share) {
  const at = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1), low = Math.min(Math.floor(at), RAMP.length - 2);
  const [one, other] = [fromHex(RAMP[low]), fromHex(RAMP[low + 1])];
  return one.map((part, i) => Math.round(part + (at - low) * (other[i] - part)));
}

const COLOURINGS = {
  cluster: { label: "Cluster", groups: labels, last: k, name: clusterName },
  truth: truth && { label: "Class", groups: truth, last: data.truth.length, name: (group) => data.truth[group] },
  confidence: confidence && { label: "Confidence", groups: null },
};
const leastSure = confidence ? confidence.reduce((least, one) => Math.min(least, one), 254) / 255 : 0;
const sureness = (row) => (confidence[row] / 255 - leastSure) / (1 - leastSure);

// -------------------------------------------------------------------------------------------------------------- state

const state = { colouring: "cluster", lit: new Set(), matches: null, listed: [], fade: true, hovered: -1, marked: -1 };
const view = { scale: 1, left: 0, top: 0 }; // screen = scale * plane + (left, top), in CSS pixels
const isLit = (row) => (state.lit.size === 0 || state.lit.has(labels[row])) && (!state.matches || state.matches[row] === 1);

// --------------------------------------------------------------------------------------------------------- the canvas

const canvas = $("canvas"), stage = $("stage"), paint = canvas.getContext("2d");
const extent = { width: Math.max(1, xs.reduce(larger, 0)), height: Math.max(1, ys.reduce(larger, 0)) };
function larger(a, b) { return a > b ? a : b; }
const reds = new Uint8Array(n), greens = new Uint8Array(n), blues = new Uint8Array(n), alphas = new Uint8Array(n);
const mixed = shuffled(n), order = mixed.slice(); // order: what is not highlighted comes first
let width = 0, height = 0, ratio = 1, image = null, fit = 1, waiting = false;

/** Rows in a fixed random order, so that no cluster is drawn over all others. */
function shuffled(size) {
  const rows = Uint32Array.from({ length: size }, (_, i) => i);
  let seed = 1;
  for (let i = size - 1; i > 0; i--) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const j = Math.floor((seed / 4294967296) * (i + 1));
    [rows[i], rows[j]] = [rows[j], rows[i]];
  }
  return rows;
}

function recolour() {
  const way = COLOURINGS[state.colouring];
  const table = way.groups && Array.from({ length: way.last + 1 }, (_, group) => fromHex(colourOf(group, way.last)));
  const ground = fromHex(NO_GROUP), dim = document.documentElement.dataset.theme === "dark" ? 46 : 38;
  for (let row = 0; row < n; row++) {
    const lit = isLit(row), [r, g, b] = !lit ? ground : table ? table[way.groups[row]] : ramp(sureness(row));
    const faded = state.fade && confidence && state.colouring !== "confidence" ? 0.3 + 0.7 * sureness(row) : 1;
    reds[row] = r; greens[row] = g; blues[row] = b;
    alphas[row] = lit ? Math.round((n > 20000 ? 190 : 225) * faded) : dim;
  }
  let next = 0;
  for (const front of [false, true]) for (const row of mixed) if (isLit(row) === front) order[next++] = row;
  redraw();
}

function resize() {
  const box = stage.getBoundingClientRect();
  if (box.width < 80 || box.height < 80) return; // not laid out
  const whole = Math.abs(view.scale - fit) < 1e-9 * fit;
  const first = width === 0, [oldWidth, oldHeight] = [width, height];
  width = Math.max(1, Math.round(box.width) - 2); height = Math.max(1, Math.round(box.height) - 2);
  ratio = Math.min(window.devicePixelRatio || 1, n > 50000 ? 1.5 : 3);
  canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
  image = paint.createImageData(canvas.width, canvas.height);
  const margin = 28;
  fit = Math.min((width - 2 * margin) / extent.width, (height - 2 * margin) / extent.height);
  if (first || whole) showAll();
  else { view.left += (width - oldWidth) / 2; view.top += (height - oldHeight) / 2; }
  redraw();
}

function showAll() {
  view.scale = fit;
  view.left = (width - fit * extent.width) / 2;
  view.top = (height + fit * extent.height) / 2; // the plane's y goes up
  redraw();
}

const across = (row) => view.scale * xs[row] + view.left, down = (row) => view.top - view.scale * ys[row];

/** The radius of a row's disc in CSS pixels: small where there are many or the map is, larger when zoomed in. */
function radius() {
  const room = Math.min(1, Math.sqrt((width * height) / 540000));
  const whole = Math.min(4.2, Math.max(1.05, (170 * room) / Math.sqrt(n + 900)));
  return Math.min(whole * Math.pow(view.scale / fit, 0.35), 8);
}

function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}

function draw() {
  const begun = performance.now();
  drawRows();
  paint.setTransform(ratio, 0, 0, ratio, 0, 0);
  if (COLOURINGS[state.colouring].groups === labels && k <= 60) drawNumbers();
  state.listed.forEach(ring);
  if (state.marked >= 0) ring(state.marked);
  if (state.hovered >= 0) ring(state.hovered);
  canvas.dataset.zoom = (view.scale / fit).toFixed(4);
  canvas.dataset.milliseconds = (performance.now() - begun).toFixed(1);
}

/** All rows as discs, blended into the pixels by hand: many times faster than paths where there are many. */
function drawRows() {
  const pixels = image.data, wide = canvas.width, high = canvas.height;
  const [r0, g0, b0] = fromHex(getComputedStyle(document.documentElement).getPropertyValue("--raised").trim());
  new Uint32Array(pixels.buffer).fill((255 << 24) | (b0 << 16) | (g0 << 8) | r0);
  const { reach, cover } = disc(radius() * ratio), side = 2 * reach + 1;
  const scale = view.scale * ratio, left = view.left * ratio, top = view.top * ratio;
  for (let i = 0; i < n; i++) {
    const row = order[i], x = Math.round(scale * xs[row] + left), y = Math.round(top - scale * ys[row]);
    if (x < -reach || y < -reach || x >= wide + reach || y >= high + reach) continue;
    const r = reds[row], g = greens[row], b = blues[row], alpha = alphas[row];
    const inside = x >= reach && y >= reach && x < wide - reach && y < high - reach;
    for (let dy = 0, at = 0; dy < side; dy++) {
      let pixel = ((y + dy - reach) * wide + x - reach) * 4;
      for (let dx = 0; dx < side; dx++, at++, pixel += 4) {
        const share = (cover[at] * alpha) >> 8;
        if (share === 0) continue;
        if (!inside && (x + dx < reach || x + dx - reach >= wide || y + dy < reach || y + dy - reach >= high)) continue;
        pixels[pixel] += ((r - pixels[pixel]) * share) >> 8;
        pixels[pixel + 1] += ((g - pixels[pixel + 1]) * share) >> 8;
        pixels[pixel + 2] += ((b - pixels[pixel + 2]) * share) >> 8;
      }
    }
  }
  paint.putImageData(image, 0, 0);
}

/** How much of each pixel a disc covers, 0 to 256. */
function disc(size) {
  const reach = Math.ceil(size), side = 2 * reach + 1, cover = new Uint16Array(side * side);
  for (let dy = -reach; dy <= reach; dy++)
    for (let dx = -reach; dx <= reach; dx++)
      cover[(dy + reach) * side + dx + reach] = Math.round(256 * Math.min(1, Math.max(0, size + 0.5 - Math.hypot(dx, dy))));
  return { reach, cover };
}

/** Each cluster's number at the row next to its median, so that colour is not all there is to go by. */
const anchors = middles();
function middles() {
  const members = Array.from({ length: k + 1 }, () => []);
  for (let row = 0; row < n; row++) members[labels[row]].push(row);
  const median = (rows, values) => rows.map((row) => values[row]).sort((a, b) => a - b)[rows.length >> 1];
  return members.slice(0, k).map((rows) => {
    const x = median(rows, xs), y = median(rows, ys), far = (row) => (xs[row] - x) ** 2 + (ys[row] - y) ** 2;
    return rows.length ? rows.reduce((one, other) => (far(other) < far(one) ? other : one)) : -1;
  });
}

function drawNumbers() {
  const style = getComputedStyle(document.documentElement);
  paint.font = "600 15px system-ui, sans-serif";
  paint.textAlign = "center"; paint.textBaseline = "middle"; paint.lineJoin = "round"; paint.lineWidth = 4;
  paint.strokeStyle = style.getPropertyValue("--raised"); paint.fillStyle = style.getPropertyValue("--ink");
  anchors.forEach((anchor, label) => {
    if (anchor < 0 || (state.lit.size && !state.lit.has(label))) return;
    paint.strokeText(String(label), across(anchor), down(anchor));
    paint.fillText(String(label), across(anchor), down(anchor));
  });
}

function ring(row) {
  paint.beginPath();
  paint.arc(across(row), down(row), radius() + 3, 0, 2 * Math.PI);
  paint.lineWidth = 2; paint.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--ink");
  paint.stroke();
}

// -------------------------------------------------------------------------------------------------- which row is there

const CELLS = Math.min(256, Math.max(8, Math.round(Math.sqrt(n / 4)))), cellSize = (data.unit + 1) / CELLS;
const cellOf = (row) => Math.floor(ys[row] / cellSize) * CELLS + Math.floor(xs[row] / cellSize);
const starts = new Uint32Array(CELLS * CELLS + 1), inCells = new Uint32Array(n);
for (let row = 0; row < n; row++) starts[cellOf(row) + 1]++;
for (let cell = 0; cell < CELLS * CELLS; cell++) starts[cell + 1] += starts[cell];
for (let row = 0, next = starts.slice(); row < n; row++) inCells[next[cellOf(row)]++] = row;

/** The highlighted row nearest to a place on the screen, within a few pixels; -1 for none. */
function rowAt(x, y, within) {
  const px = (x - view.left) / view.scale, py = (view.top - y) / view.scale, reach = within / view.scale;
  const cell = (value) => Math.min(CELLS - 1, Math.max(0, Math.floor(value / cellSize)));
  let best = -1, least = reach * reach;
  for (let line = cell(py - reach); line <= cell(py + reach); line++)
    for (let column = cell(px - reach); column <= cell(px + reach); column++)
      for (let i = starts[line * CELLS + column]; i < starts[line * CELLS + column + 1]; i++) {
        const row = inCells[i], far = (xs[row] - px) ** 2 + (ys[row] - py) ** 2;
        if (far < least && isLit(row)) { best = row; least = far; }
      }
  return best;
}

// ------------------------------------------------------------------------------------------------------ move and zoom

function zoomAt(x, y, factor) {
  const scale = Math.min(Math.max(view.scale * factor, fit * 0.5), fit * 400), change = scale / view.scale;
  view.left = x - (x - view.left) * change;
  view.top = y - (y - view.top) * change;
  view.scale = scale;
  redraw();
}
function move(dx, dy) { view.left += dx; view.top += dy; redraw(); }

const pointers = new Map();
let travelled = 0;
const place = (event) => { const box = canvas.getBoundingClientRect(); return { x: event.clientX - box.left, y: event.clientY - box.top }; };

canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, place(event));
  travelled = 0;
});
canvas.addEventListener("pointermove", (event) => {
  const now = place(event), last = pointers.get(event.pointerId);
  if (!last) { hover(now, 9); return; }
  travelled += Math.hypot(now.x - last.x, now.y - last.y);
  const other = [...pointers].find(([id]) => id !== event.pointerId);
  if (other) {
    const fixed = other[1], apart = (spot) => Math.hypot(spot.x - fixed.x, spot.y - fixed.y);
    zoomAt((now.x + fixed.x) / 2, (now.y + fixed.y) / 2, apart(now) / Math.max(apart(last), 1));
    move((now.x - last.x) / 2, (now.y - last.y) / 2);
  } else if (travelled > 3) {
    canvas.classList.add("dragging");
    hide();
    move(now.x - last.x, now.y - last.y);
  }
  pointers.set(event.pointerId, now);
});
function release(event) {
  if (!pointers.delete(event.pointerId)) return;
  canvas.classList.remove("dragging");
  if (event.type !== "pointerup" || travelled > 3 || pointers.size) return;
  const spot = place(event), touch = event.pointerType === "touch";
  hover(spot, touch ? 22 : 9);
  if (!touch) light(state.hovered >= 0 ? labels[state.hovered] : null);
}
canvas.addEventListener("pointerup", release);
canvas.addEventListener("pointercancel", release);
canvas.addEventListener("pointerleave", (event) => {
  if (event.pointerType !== "touch") hide(); // a finger leaves with every tap
});
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const spot = place(event), lines = event.deltaMode === 1 ? 16 : 1;
  zoomAt(spot.x, spot.y, Math.exp(-Math.max(-60, Math.min(60, event.deltaY * lines)) * (event.ctrlKey ? 0.01 : 0.004)));
}, { passive: false });
canvas.addEventListener("dblclick", (event) => { const spot = place(event); zoomAt(spot.x, spot.y, event.shiftKey ? 0.5 : 2); });
const KEYS = {
  ArrowLeft: () => move(60, 0), ArrowRight: () => move(-60, 0), ArrowUp: () => move(0, 60), ArrowDown: () => move(0, -60),
  "+": () => zoomAt(width / 2, height / 2, 1.4), "=": () => zoomAt(width / 2, height / 2, 1.4),
  "-": () => zoomAt(width / 2, height / 2, 1 / 1.4), "0": showAll, Escape: () => { state.marked = -1; light(null); },
};
canvas.addEventListener("keydown", (event) => {
  if (!KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  KEYS[event.key]();
});
$("zoom-in").addEventListener("click", () => zoomAt(width / 2, height / 2, 1.6));
$("zoom-out").addEventListener("click", () => zoomAt(width / 2, height / 2, 1 / 1.6));
$("zoom-all").addEventListener("click", showAll);

// ------------------------------------------------------------------------------------------------------------ tooltip

const tooltip = $("tooltip");

function hover(spot, within) {
  const row = rowAt(spot.x, spot.y, Math.max(within, radius() + 2));
  canvas.classList.toggle("pointing", row >= 0);
  if (row < 0) { hide(); return; }
  if (row !== state.hovered) { state.hovered = row; tooltip.replaceChildren(...about(row)); redraw(); }
  tooltip.hidden = false;
  const x = across(row), y = down(row), box = tooltip.getBoundingClientRect();
  const left = x + 16 + box.width > width ? x - 16 - box.width : x + 16;
  tooltip.style.transform = `translate(${Math.max(4, Math.min(left, width - box.width - 4))}px, ${Math.max(4, Math.min(y - 20, height - box.height - 4))}px)`;
}

function hide() {
  tooltip.hidden = true;
  if (state.hovered >= 0) { state.hovered = -1; redraw(); }
}

function about(row) {
  const label = labels[row], sure = confidence ? ` · ${percent(confidence[row] / 255)} sure` : "";
  return [
    el("strong", {}, nameOf(row)),
    el("span", {}, swatch(label), ` ${clusterName(label)}${sure}`),
    truth ? el("p", {}, `Class ${data.truth[truth[row]]}`) : "",
    thumb(thumbPlace ? thumbPlace.get(row) : undefined, 72) || "",
    textOf(row) ? el("p", {}, textOf(row)) : "",
  ].filter((part) => part !== "");
}

const swatch = (label) => el("span", { class: "swatch", style: { "--hue": colourOf(label, k) }, "aria-hidden": "true" });

/** A thumbnail by its place in the sheet, its longer side that many pixels; null if there is none. */
function thumb(place, side) {
  if (place === undefined) return null;
  const { width: w, height: h, columns, lines } = data.thumbnails, scale = side / Math.max(w, h);
  const column = place % columns, line = Math.floor(place / columns);
  return el("span", {
    class: scale > 2 ? "thumb coarse" : "thumb",
    style: {
      width: `${w * scale}px`, height: `${h * scale}px`,
      "background-size": `${columns * w * scale}px ${lines * h * scale}px`,
      "background-position": `${-column * w * scale}px ${-line * h * scale}px`,
    },
  });
}

// ---------------------------------------------------------------------------------------------- highlight, search, theme

/** Highlight a cluster alone, or let go if it already is or is null. */
function light(label) {
  const again = state.lit.size === 1 && state.lit.has(label);
  state.lit = label === null || again ? new Set() : new Set([label]);
  for (const button of document.querySelectorAll("[data-cluster]"))
    button.setAttribute("aria-pressed", String(state.lit.has(Number(button.dataset.cluster))));
  for (const card of document.querySelectorAll(".card"))
    card.classList.toggle("lit", state.lit.has(Number(card.dataset.card)));
  recolour();
}

/** Put a row in the middle of the map, with a ring around it. */
function show(row) {
  if (state.lit.size && !state.lit.has(labels[row])) light(null);
  state.marked = row;
  if (view.scale < 3 * fit) view.scale = 3 * fit;
  view.left = width / 2 - view.scale * xs[row];
  view.top = height / 2 + view.scale * ys[row];
  stage.scrollIntoView({ block: "nearest" });
  redraw();
  hover({ x: across(row), y: down(row) }, 9);
}

function search(words) {
  const wanted = words.trim().toLowerCase(), found = $("found");
  if (!wanted) { state.matches = null; state.listed = []; found.replaceChildren(); recolour(); return; }
  const matches = new Uint8Array(n), first = [];
  let total = 0;
  for (let row = 0; row < n; row++) {
    if (!nameOf(row).toLowerCase().includes(wanted) && !textOf(row).toLowerCase().includes(wanted)) continue;
    matches[row] = 1;
    total++;
    if (first.length < 12) first.push(row);
  }
  state.matches = total ? matches : null;
  state.listed = first;
  showAll();
  const lead = el("p", {}, total === 0 ? "Nothing matches" : `${count(total)} ${total === 1 ? "row matches" : "rows match"}`);
  found.replaceChildren(lead, ...first.map((row) => el(
    "button", { type: "button", onclick: () => show(row) },
    swatch(labels[row]), ` ${nameOf(row)}`, textOf(row) ? el("small", {}, textOf(row)) : "",
  )));
  recolour();
}

function paintTheme(theme) {
  document.documentElement.dataset.theme = theme;
  $("theme").textContent = theme === "dark" ? "Light" : "Dark";
  $("theme").setAttribute("aria-pressed", String(theme === "dark"));
}
const preferred = window.matchMedia("(prefers-color-scheme: dark)");

// ------------------------------------------------------------------------------------------------------- the page's text

function figures(target, pairs) {
  target.append(...pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

function writeHead() {
  const size = data.n_features === null ? "a graph" : `${count(data.n_features)} ${data.n_features === 1 ? "feature" : "features"}`;
  const took = data.seconds === null ? "" : ` It took ${brief(Number(data.seconds.toPrecision(2)))} s.`;
  $("lede").textContent = `${data.model.name} found ${count(k)} ${k === 1 ? "cluster" : "clusters"} among ${count(n)} rows of ${size}.${took}`;
  const pairs = [["rows", count(n)], ["clusters", count(k)]];
  if (data.n_unassigned) pairs.push(["in no cluster", count(data.n_unassigned)]);
  if (data.confidence !== null) pairs.push(["mean confidence", percent(data.confidence)], ["at most half sure", percent(data.in_doubt)]);
  if (data.agreement) pairs.push(["accuracy against the classes", percent(data.agreement.scores.accuracy)]);
  figures($("figures"), pairs);
  const faded = confidence ? " Rows are the fainter, the less sure they are of their cluster." : "";
  $("map-note").textContent = `Every dot is a row; places by ${data.plane}.${faded} Near means alike; distances between far groups mean little.`;
  canvas.setAttribute("aria-label", `Map of ${count(n)} rows in ${k} clusters; the clusters are described below`);
  $("search").placeholder = data.texts ? "Search names and texts" : data.rows.ids ? "Search names" : "Search row numbers";
}

function writeControls() {
  const offered = Object.entries(COLOURINGS).filter(([, way]) => way);
  $("colour").append(...offered.map(([key, way]) => {
    const input = el("input", { type: "radio", name: "colour", value: key, checked: key === "cluster" });
    input.addEventListener("change", () => { state.colouring = key; writeLegend(); recolour(); });
    return el("label", {}, input, way.label);
  }));
  $("colour").hidden = offered.length < 2;
  $("fade-label").hidden = !confidence;
  $("fade").addEventListener("change", (event) => { state.fade = event.target.checked; recolour(); });
  let timer = 0;
  $("search").addEventListener("input", (event) => { clearTimeout(timer); timer = setTimeout(() => search(event.target.value), 120); });
  $("search").addEventListener("keydown", (event) => { if (event.key === "Escape") { event.target.value = ""; search(""); } });
}

function writeLegend() {
  const way = COLOURINGS[state.colouring], legend = $("legend");
  if (!way.groups) {
    const colours = Array.from({ length: 9 }, (_, i) => toHex(...ramp(i / 8))).join(", ");
    legend.replaceChildren(
      el("div", { class: "ramp", style: { background: `linear-gradient(to right, ${colours})` } }),
      el("div", { class: "ends" }, el("span", {}, `${percent(leastSure)} sure`), el("span", {}, "100 % sure")),
    );
    return;
  }
  const sizes = new Uint32Array(way.last + 1);
  for (let row = 0; row < n; row++) sizes[way.groups[row]]++;
  const groups = Array.from(sizes, (size, group) => ({ size, group })).filter(({ size, group }) => size || group < way.last);
  const isCluster = way.groups === labels;
  legend.replaceChildren(...groups.map(({ size, group }) => el(
    isCluster ? "button" : "div",
    isCluster
      ? { type: "button", "data-cluster": group, "aria-pressed": String(state.lit.has(group)), onclick: () => light(group) }
      : { class: "key" },
    el("span", { class: "swatch", style: { "--hue": colourOf(group, way.last) }, "aria-hidden": "true" }),
    el("span", {}, way.name(group)), el("span", { class: "count" }, count(size)),
    isCluster && leading(group) ? el("span", { class: "what" }, leading(group)) : "",
  )));
}

// -------------------------------------------------------------------------------------------------------------- cards

function writeCards() {
  const notes = [];
  if (data.clusters.some((one) => one.typical.length))
    notes.push(confidence ? "Typical rows are the most confident, then the closest to the cluster’s mean." : "Typical rows are the closest to the cluster’s mean; this model gives no memberships, so none is called unsure.");
  if (textPlace) notes.push(`There are too many texts to carry along: only the ${count(textPlace.size)} on cards are here, and found by search.`);
  else if (data.texts && data.texts.length < 240) notes.push(`Texts are cut after ${data.texts.length} characters, since there are many.`);
  if (thumbPlace && thumbPlace.size < n) notes.push(`${count(thumbPlace.size)} of ${count(n)} images are here, those on cards among them.`);
  $("clusters-note").textContent = notes.join(" ");
  $("cards").append(...data.clusters.map(card));
}

function card(one) {
  const hue = colourOf(one.label, k), words = leading(one.label);
  const title = el("button", { type: "button", "data-cluster": one.label, "aria-pressed": "false", onclick: () => { light(one.label); stage.scrollIntoView({ block: "nearest" }); } }, words || clusterName(one.label));
  const size = `${words ? `Cluster ${one.label} · ` : ""}${count(one.size)} ${one.size === 1 ? "row" : "rows"} · ${percent(one.share)}`;
  return el("article", { class: "card", "data-card": one.label, style: { "--hue": hue } },
    el("header", {}, swatch(one.label), el("h3", {}, title)),
    el("p", { class: "size" }, size),
    one.size === 0 ? el("p", { class: "note" }, "No row is in this cluster.") : "",
    one.confidence === null ? "" : meter(one.confidence),
    one.terms.length ? el("ul", { class: "terms", "aria-label": "Leading terms" }, ...one.terms.map(([term]) => el("li", {}, term))) : "",
    one.features.length ? features(one.features) : "",
    data.thumbnails && one.size ? pictures(one) : lists(one),
  );
}

const meter = (share) => el("div", { class: "meter" }, el("i", { style: { "--part": `${100 * share}%` } }), el("span", {}, `${percent(share)} sure`));

function features(rows) {
  const widest = Math.max(1, ...rows.map(([, apart]) => Math.abs(apart)));
  return el("table", { class: "features" }, el("caption", { class: "unseen" }, "Features that differ most from all rows, in standard deviations"),
    el("tbody", {}, ...rows.map(([name, apart, mean]) => {
      const part = (50 * Math.abs(apart)) / widest, side = apart < 0 ? { right: "50%" } : { left: "50%" };
      const told = `${apart > 0 ? "+" : "−"}${Math.abs(apart).toFixed(1)} sd`;
      return el("tr", { title: `mean ${mean}` }, el("td", {}, name), el("td", {}, el("span", { class: "bar" }, el("i", { style: { ...side, width: `${part}%` } }))), el("td", {}, told));
    })));
}

function pictures(one) {
  const shown = (row, caption, label) => el("button", { type: "button", "aria-label": label, title: label, onclick: () => show(row) }, thumb(thumbPlace.get(row), 40), caption);
  const typical = one.typical.map((row) => shown(row, "", nameOf(row)));
  const doubtful = one.doubtful.map(({ row, other }) => shown(row, el("span", { class: "or" }, `or ${other}`), `${nameOf(row)}, or cluster ${other}`));
  return el("div", {},
    el("div", { class: "mean-line" }, el("div", {}, el("h4", {}, "Mean"), thumb(one.label, 64)), el("div", {}, el("h4", {}, "Typical"), el("div", { class: "pictures" }, ...typical))),
    doubtful.length ? el("h4", {}, "Least sure") : "", doubtful.length ? el("div", { class: "pictures" }, ...doubtful) : "");
}

function lists(one) {
  const line = (row, tail = "") => el("li", {}, el("button", { type: "button", onclick: () => show(row) },
    el("span", { class: "name" }, nameOf(row)), tail, textOf(row) ? el("span", { class: "text" }, textOf(row)) : ""));
  const other = (each) => el("span", { class: "or" }, ` ${percent(each.confidence)} sure, or cluster ${each.other} (${percent(each.share)})`);
  const listed = (title, kind, lines) => (lines.length ? [el("h4", {}, title), el("ul", { class: kind }, ...lines)] : []);
  return el("div", {},
    ...listed("Typical", data.texts ? "members" : "members short", one.typical.map((row) => line(row))),
    ...listed("Least sure", "members", one.doubtful.map((each) => line(each.row, other(each)))));
}

// ------------------------------------------------------------------------------------------------------------- charts

/** A small chart of values over whole numbers: a line, or stems; one x may be chosen, a gap after another shaded. */
function chart({ title, note, at, values, errors = null, chosen = null, gap = null, stems = false }) {
  const box = { width: 360, height: 190, left: 46, right: 10, top: 12, bottom: 26 };
  const known = values.filter((value) => value !== null);
  const spread = (sign) => values.map((value, i) => (value === null ? null : value + sign * (errors ? errors[i] : 0))).filter((value) => value !== null);
  let low = stems ? Math.min(0, ...known) : Math.min(...spread(-1)), high = Math.max(...spread(1));
  if (high === low) { high += Math.abs(high) || 1; low -= stems ? 0 : Math.abs(low) || 1; }
  const x = (value) => box.left + ((value - at[0]) / Math.max(at[at.length - 1] - at[0], 1)) * (box.width - box.left - box.right);
  const y = (value) => box.height - box.bottom - ((value - low) / (high - low)) * (box.height - box.top - box.bottom);
  const picture = svg("svg", { viewBox: `0 0 ${box.width} ${box.height}`, role: "img", "aria-label": `${title}. ${note}` });
  const add = (...parts) => picture.append(svg(...parts));
  for (const value of [low, (low + high) / 2, high]) {
    add("line", { class: "axis", x1: box.left, x2: box.width - box.right, y1: y(value), y2: y(value) });
    add("text", { x: box.left - 8, y: y(value) + 4, "text-anchor": "end" }, tick(value, high - low));
  }
  const every = Math.ceil(at.length / 10);
  at.forEach((one, i) => { if (i % every === 0) add("text", { x: x(one), y: box.height - 8, "text-anchor": "middle" }, String(one)); });
  if (gap !== null) add("rect", { class: "gap", x: x(gap), width: x(gap + 1) - x(gap), y: y(high), height: y(low) - y(high) });
  if (!stems) add("polyline", { class: "line", points: at.map((one, i) => (values[i] === null ? "" : `${x(one)},${y(values[i])}`)).join(" ") });
  at.forEach((one, i) => {
    if (values[i] === null || (at.length > 60 && one !== chosen)) return;
    const mark = one === chosen ? " chosen" : "", from = errors ? values[i] - errors[i] : low, to = errors ? values[i] + errors[i] : values[i];
    if (stems || errors) add("line", { class: `stem${mark}`, x1: x(one), x2: x(one), y1: y(from), y2: y(to) });
    if (at.length <= 60) picture.append(svg("circle", { class: `dot${mark}`, cx: x(one), cy: y(values[i]), r: one === chosen ? 4.5 : 2.8 }, svg("title", {}, `${one}: ${brief(values[i])}`)));
  });
  return el("figure", {}, el("figcaption", {}, title, el("span", {}, note)), picture);
}

/** A value with as many digits as tell it from others so far apart. */
function tick(value, apart) {
  if (value === 0) return "0";
  if (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3) return value.toExponential(1);
  return value.toFixed(Math.min(4, Math.max(0, 2 - Math.floor(Math.log10(apart)))));
}

const EVIDENCE = [
  ["stability", "Stability", "Agreement of the clusters of random parts of the data, for every number of clusters; 1 is perfect."],
  ["gaps", "Eigengap", "How far the graph’s spectrum jumps after K eigenvalues, for every number of clusters."],
  ["modularity", "Modularity", "Of the communities on parts of the data, for every number of clusters."],
];
const PARTS = [
  ["objective", "Objective", "By iteration."],
  ["likelihood", "Log-likelihood", "The part of the objective that speaks for the densities."],
  ["penalty", "Penalty", "The part that speaks for smoothness on the graph; it is subtracted."],
];

function writeEvidence() {
  const charts = [], found = data.evidence;
  if (found && found.candidates.length > 1)
    for (const [key, title, note] of EVIDENCE)
      if (found[key]) charts.push(chart({ title, note: `${note} ${found.n_clusters} were chosen.`, at: found.candidates, values: found[key], errors: key === "stability" ? found.stability_error : null, chosen: found.n_clusters }));
  if (data.spectrum) {
    const { values, gap } = data.spectrum;
    charts.push(chart({ title: "Spectrum", note: `The smallest eigenvalues of the graph’s normalised Laplacian; the widest gap is after ${gap}.`, at: values.map((_, i) => i + 1), values, gap, stems: true }));
  }
  for (const [key, title, note] of PARTS) {
    const values = data.history && data.history[key];
    if (values && values.some((value) => value !== null && value !== values[0])) charts.push(chart({ title, note, at: values.map((_, i) => i + 1), values }));
  }
  $("charts").append(...charts);
  $("evidence").hidden = !charts.length && !data.story;
  if (data.story) { $("story").hidden = false; $("story").querySelector("pre").textContent = data.story; }
}

function writeAgreement() {
  if (!data.agreement) return;
  $("agreement").hidden = false;
  const { scores, clusters, counts } = data.agreement;
  figures($("scores"), Object.entries(scores).map(([name, value]) => [name, value.toFixed(3)]));
  if (!counts) { $("confusion").hidden = true; return; }
  const head = el("tr", {}, el("td", { class: "none", style: { "--part": "0%" } }), ...clusters.map((label) => el("th", { scope: "col" }, label < 0 ? "none" : String(label))));
  const body = counts.map((row, i) => {
    const total = row.reduce((sum, value) => sum + value, 0);
    return el("tr", {}, el("th", { scope: "row" }, data.truth[i]), ...row.map((value) => el("td", { class: value === 0 ? "none" : value > 0.6 * total ? "strong" : "", style: { "--part": `${(90 * value) / total}%` } }, count(value))));
  });
  $("confusion").append(el("table", { class: "confusion" }, el("caption", { class: "unseen" }, "Rows of each class in each cluster"), el("thead", {}, head), el("tbody", {}, ...body)),
    el("p", { class: "note" }, "Classes down, clusters across, in the order in which they match."));
}

function writeSettings() {
  const table = (title, pairs) => {
    const entries = Object.entries(pairs);
    return entries.length ? el("div", {}, el("h3", {}, title), el("table", { class: "pairs" }, el("tbody", {}, ...entries.map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, brief(value))))))) : "";
  };
  const facts = data.seconds === null ? data.model.facts : { ...data.model.facts, seconds: data.seconds };
  $("tables").append(...[table(`Parameters of ${data.model.name}`, data.model.parameters), table("The fit", facts), table("Settings", data.settings), table("Versions", data.model.versions)].filter((part) => part !== ""));
  $("reproduce").textContent = data.reproduce;
  $("foot").textContent = `Made by fiedler ${data.model.versions.fiedler}. This file is complete: it loads nothing and sends nothing.`;
}

// -------------------------------------------------------------------------------------------------------------- begin

if (data.thumbnails) document.documentElement.style.setProperty("--sprite", `url(data:image/png;base64,${data.thumbnails.png})`);
paintTheme(preferred.matches ? "dark" : "light");
$("theme").addEventListener("click", () => { paintTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"); recolour(); });
preferred.addEventListener("change", (event) => { paintTheme(event.matches ? "dark" : "light"); recolour(); });
writeHead();
writeControls();
writeLegend();
writeCards();
writeEvidence();
writeAgreement();
writeSettings();
new ResizeObserver(resize).observe(stage);
resize();
recolour();
document.documentElement.dataset.ready = "yes";
})();
