// The row at a position of the map, by a grid of cells.

import { toLayout } from "./camera.js";
import { data, n, xs, ys } from "./rows.js";
import { isHighlighted } from "./state.js";

const N_CELLS = Math.min(256, Math.max(8, Math.round(Math.sqrt(n / 4)))); // per axis
const CELL_SIZE = (data.max_coordinate + 1) / N_CELLS;
const cellOf = (row) => Math.floor(ys[row] / CELL_SIZE) * N_CELLS + Math.floor(xs[row] / CELL_SIZE);
const { starts, rows } = rowsByCell();

/** Rows sorted by cell; the rows of a cell lie between its start and that of the next cell. */
function rowsByCell() {
  const starts = new Uint32Array(N_CELLS * N_CELLS + 1);
  for (let row = 0; row < n; row++) starts[cellOf(row) + 1]++;
  for (let cell = 0; cell < N_CELLS * N_CELLS; cell++) starts[cell + 1] += starts[cell];
  const rows = new Uint32Array(n);
  const next = starts.slice();
  for (let row = 0; row < n; row++) rows[next[cellOf(row)]++] = row;
  return { starts, rows };
}

const cellIndex = (coordinate) => Math.min(N_CELLS - 1, Math.max(0, Math.floor(coordinate / CELL_SIZE)));

/** The highlighted row nearest to a point of the screen, within a number of pixels; -1 if there is none. */
export function nearestRow(camera, point, pixels) {
  const { x, y } = toLayout(camera, point);
  const reach = pixels / camera.scale;
  let nearest = -1;
  let minSquare = reach * reach;
  for (let line = cellIndex(y - reach); line <= cellIndex(y + reach); line++) {
    const first = starts[line * N_CELLS + cellIndex(x - reach)];
    const end = starts[line * N_CELLS + cellIndex(x + reach) + 1];
    for (let i = first; i < end; i++) {
      const square = (xs[rows[i]] - x) ** 2 + (ys[rows[i]] - y) ** 2;
      if (square < minSquare && isHighlighted(rows[i])) {
        nearest = rows[i];
        minSquare = square;
      }
    }
  }
  return nearest;
}
