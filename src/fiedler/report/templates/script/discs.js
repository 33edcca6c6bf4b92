// Rows as discs, blended into the pixels by hand: many times faster than paths where there are many.

import { COLOURINGS, coloursBy, opacity, toRgb } from "./colours.js";
import { themed } from "./dom.js";
import { confidence, n, xs, ys } from "./rows.js";
import { isLit, state } from "./state.js";

const DIMMED = 150; // the opacity of what is not highlighted, of 255

const reds = new Uint8Array(n);
const greens = new Uint8Array(n);
const blues = new Uint8Array(n);
const alphas = new Uint8Array(n);
const mixed = shuffled(n);
const order = mixed.slice(); // what is not highlighted comes first

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

/** Give every row its colour and its turn. */
export function dress() {
  const way = COLOURINGS[state.colouring];
  const table = coloursBy(way);
  const dim = toRgb(themed("--dim")); // however many lie upon each other, it gets no louder
  const fades = state.fade && confidence !== null && state.colouring !== "confidence";
  const alphaOf = Uint8Array.from({ length: 256 }, (_, sure) => Math.round(255 * opacity(sure / 255)));
  for (let row = 0; row < n; row++) {
    const lit = isLit(row);
    const colour = lit ? table[way.of[row]] : dim;
    reds[row] = colour[0];
    greens[row] = colour[1];
    blues[row] = colour[2];
    alphas[row] = !lit ? DIMMED : fades ? alphaOf[confidence[row]] : 255;
  }
  let next = 0;
  for (const front of [false, true]) for (const row of mixed) if (isLit(row) === front) order[next++] = row;
}

/** The radius of a disc in CSS pixels: small where there are many or the map is, larger when zoomed in. */
export function radiusIn({ width, height, scale, fit }) {
  const room = Math.min(1, Math.sqrt((width * height) / 540000));
  const least = Math.min(4.2, Math.max(1.05, (170 * room) / Math.sqrt(n + 900)));
  return Math.min(least * Math.pow(scale / fit, 0.35), 8);
}

/** Draw all rows over a ground into an image, whose pixels are so many a CSS pixel. */
export function drawDiscs(image, camera, ratio, ground) {
  const [r0, g0, b0] = ground;
  new Uint32Array(image.data.buffer).fill((255 << 24) | (b0 << 16) | (g0 << 8) | r0);
  const { reach, cover } = disc(radiusIn(camera) * ratio);
  const [scale, left, top] = [camera.scale * ratio, camera.left * ratio, camera.top * ratio];
  for (let i = 0; i < n; i++) {
    const row = order[i];
    const x = Math.round(scale * xs[row] + left);
    const y = Math.round(top - scale * ys[row]);
    if (x >= -reach && y >= -reach && x < image.width + reach && y < image.height + reach) {
      stamp(image, row, x, y, reach, cover);
    }
  }
}

/** How much of each pixel a disc covers, 0 to 256. */
function disc(radius) {
  const reach = Math.ceil(radius);
  const side = 2 * reach + 1;
  const cover = Uint16Array.from({ length: side * side }, (_, at) => {
    const far = Math.hypot((at % side) - reach, Math.floor(at / side) - reach);
    return Math.round(256 * Math.min(1, Math.max(0, radius + 0.5 - far)));
  });
  return { reach, cover };
}

/** Blend one disc in, its parts beyond the edge left out. */
function stamp({ data: pixels, width, height }, row, x, y, reach, cover) {
  const r = reds[row];
  const g = greens[row];
  const b = blues[row];
  const alpha = alphas[row];
  const side = 2 * reach + 1;
  const firstX = Math.max(-reach, -x);
  const lastX = Math.min(reach, width - 1 - x);
  const lastY = Math.min(reach, height - 1 - y);
  for (let dy = Math.max(-reach, -y); dy <= lastY; dy++) {
    let at = (dy + reach) * side + firstX + reach;
    let pixel = ((y + dy) * width + x + firstX) * 4;
    for (let dx = firstX; dx <= lastX; dx++, at++, pixel += 4) {
      const share = (cover[at] * alpha + 127) >> 8; // of 255
      if (share === 0) continue;
      pixels[pixel] += ((r - pixels[pixel]) * share + 127) >> 8;
      pixels[pixel + 1] += ((g - pixels[pixel + 1]) * share + 127) >> 8;
      pixels[pixel + 2] += ((b - pixels[pixel + 2]) * share + 127) >> 8;
    }
  }
}
