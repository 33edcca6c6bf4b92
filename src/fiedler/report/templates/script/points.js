// Rows as discs, blended into the pixels directly, which is many times faster than canvas paths if there are many.

import { COLOURINGS, colourTable, opacity, toRgb } from "./colours.js";
import { themeColour } from "./dom.js";
import { confidence, n, xs, ys } from "./rows.js";
import { isHighlighted, state } from "./state.js";

const DIMMED_ALPHA = 150; // the opacity of rows that are not highlighted, of 255

const reds = new Uint8Array(n);
const greens = new Uint8Array(n);
const blues = new Uint8Array(n);
const alphas = new Uint8Array(n);
const randomOrder = shuffled(n);
const drawOrder = randomOrder.slice(); // rows that are not highlighted come first

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

/** Recompute the colour of every row and the order in which rows are drawn. */
export function updatePoints() {
  const colouring = COLOURINGS[state.colouring];
  const table = colourTable(colouring);
  const dimmed = toRgb(themeColour("--dim")); // one grey, so that many dimmed rows do not add up to a strong colour
  const fades = state.fade && confidence !== null && state.colouring !== "confidence";
  const alphaOf = Uint8Array.from({ length: 256 }, (_, value) => Math.round(255 * opacity(value / 255)));
  for (let row = 0; row < n; row++) {
    const highlighted = isHighlighted(row);
    const colour = highlighted ? table[colouring.values[row]] : dimmed;
    reds[row] = colour[0];
    greens[row] = colour[1];
    blues[row] = colour[2];
    alphas[row] = !highlighted ? DIMMED_ALPHA : fades ? alphaOf[confidence[row]] : 255;
  }
  let next = 0;
  for (const front of [false, true]) {
    for (const row of randomOrder) if (isHighlighted(row) === front) drawOrder[next++] = row;
  }
}

/** The radius of a disc in CSS pixels: smaller if there are many rows or the map is small, larger when zoomed in. */
export function pointRadius({ width, height, scale, fit }) {
  const sizeFactor = Math.min(1, Math.sqrt((width * height) / 540000));
  const base = Math.min(4.2, Math.max(1.05, (170 * sizeFactor) / Math.sqrt(n + 900)));
  return Math.min(base * Math.pow(scale / fit, 0.35), 8);
}

/** Draw all rows over a background colour into an image with `ratio` pixels per CSS pixel. */
export function drawPoints(image, camera, ratio, background) {
  const [r0, g0, b0] = background;
  new Uint32Array(image.data.buffer).fill((255 << 24) | (b0 << 16) | (g0 << 8) | r0);
  const { reach, coverage } = discMask(pointRadius(camera) * ratio);
  const [scale, left, top] = [camera.scale * ratio, camera.left * ratio, camera.top * ratio];
  for (let i = 0; i < n; i++) {
    const row = drawOrder[i];
    const x = Math.round(scale * xs[row] + left);
    const y = Math.round(top - scale * ys[row]);
    if (x >= -reach && y >= -reach && x < image.width + reach && y < image.height + reach) {
      blendDisc(image, row, x, y, reach, coverage);
    }
  }
}

/** The coverage of each pixel by a disc, 0 to 256. */
function discMask(radius) {
  const reach = Math.ceil(radius);
  const side = 2 * reach + 1;
  const coverage = Uint16Array.from({ length: side * side }, (_, i) => {
    const distance = Math.hypot((i % side) - reach, Math.floor(i / side) - reach);
    return Math.round(256 * Math.min(1, Math.max(0, radius + 0.5 - distance)));
  });
  return { reach, coverage };
}

/** Blend one disc into the image, without its parts beyond the edge. */
function blendDisc({ data: pixels, width, height }, row, x, y, reach, coverage) {
  const r = reds[row];
  const g = greens[row];
  const b = blues[row];
  const alpha = alphas[row];
  const side = 2 * reach + 1;
  const firstX = Math.max(-reach, -x);
  const lastX = Math.min(reach, width - 1 - x);
  const lastY = Math.min(reach, height - 1 - y);
  for (let dy = Math.max(-reach, -y); dy <= lastY; dy++) {
    let i = (dy + reach) * side + firstX + reach;
    let pixel = ((y + dy) * width + x + firstX) * 4;
    for (let dx = firstX; dx <= lastX; dx++, i++, pixel += 4) {
      const share = (coverage[i] * alpha + 127) >> 8; // of 255
      if (share === 0) continue;
      pixels[pixel] += ((r - pixels[pixel]) * share + 127) >> 8;
      pixels[pixel + 1] += ((g - pixels[pixel + 1]) * share + 127) >> 8;
      pixels[pixel + 2] += ((b - pixels[pixel + 2]) * share + 127) >> 8;
    }
  }
}
