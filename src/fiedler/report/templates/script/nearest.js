// Which row is where: rows sorted into the cells of a grid.

import { inPlane } from "./camera.js";
import { data, n, xs, ys } from "./rows.js";
import { isLit } from "./state.js";

const SIDE = Math.min(256, Math.max(8, Math.round(Math.sqrt(n / 4)))); // cells
const SIZE = (data.unit + 1) / SIDE;
const cellOf = (row) => Math.floor(ys[row] / SIZE) * SIDE + Math.floor(xs[row] / SIZE);
const { starts, rows } = sorted();

/** Rows by cell; those of a cell lie from its start to the next one's. */
function sorted() {
  const starts = new Uint32Array(SIDE * SIDE + 1);
  for (let row = 0; row < n; row++) starts[cellOf(row) + 1]++;
  for (let cell = 0; cell < SIDE * SIDE; cell++) starts[cell + 1] += starts[cell];
  const rows = new Uint32Array(n);
  const next = starts.slice();
  for (let row = 0; row < n; row++) rows[next[cellOf(row)]++] = row;
  return { starts, rows };
}

const cellAt = (place) => Math.min(SIDE - 1, Math.max(0, Math.floor(place / SIZE)));

/** The highlighted row nearest to a place on the screen, within so many pixels; -1 for none. */
export function rowAt(camera, spot, within) {
  const { x, y } = inPlane(camera, spot);
  const reach = within / camera.scale;
  let best = -1;
  let least = reach * reach;
  for (let line = cellAt(y - reach); line <= cellAt(y + reach); line++) {
    const from = starts[line * SIDE + cellAt(x - reach)];
    const to = starts[line * SIDE + cellAt(x + reach) + 1];
    for (let i = from; i < to; i++) {
      const far = (xs[rows[i]] - x) ** 2 + (ys[rows[i]] - y) ** 2;
      if (far < least && isLit(rows[i])) {
        best = rows[i];
        least = far;
      }
    }
  }
  return best;
}
