// The data of rows and clusters.

import { byId } from "./dom.js";
import { formatValue } from "./format.js";

export const data = JSON.parse(byId("data").textContent);

export const n = data.n_rows;
export const k = data.n_clusters;
export const xs = decodeUint16(data.rows.x);
export const ys = decodeUint16(data.rows.y);
export const labels = decodeUint16(data.rows.labels); // k for unassigned rows
export const truth = decodeUint16(data.rows.truth);
export const confidence = decodeUint8(data.rows.confidence); // of 255
export const groups = data.levels && decodeUint16(data.levels.groups); // of the finest level, one more for unassigned rows

function decodeUint8(base64) {
  if (base64 === null) return null;
  const characters = atob(base64);
  const values = new Uint8Array(characters.length);
  for (let i = 0; i < values.length; i++) values[i] = characters.charCodeAt(i);
  return values;
}

/** Decode little-endian 16-bit integers, whatever the byte order of the machine. */
function decodeUint16(base64) {
  if (base64 === null) return null;
  const bytes = decodeUint8(base64);
  const values = new Uint16Array(bytes.length / 2);
  for (let i = 0; i < values.length; i++) values[i] = bytes[2 * i] + 256 * bytes[2 * i + 1];
  return values;
}

export const nameOf = (row) => (data.rows.ids ? data.rows.ids[row] : `Row ${row}`);
export const confidenceOf = (row) => confidence[row] / 255;
export const className = (code) => data.truth[code];
export const clusterName = (label) => (label === k ? "No cluster" : `Cluster ${label}`);

/** The name that the user gave to a cluster; "" if there is none. */
export const customName = (label) => (label === k ? "" : (data.clusters[label].name ?? ""));

export const displayName = (label) => customName(label) || clusterName(label);

/** The first terms of a cluster; "" if it has none. */
export function leadingTerms(label) {
  return label === k ? "" : data.clusters[label].terms.slice(0, 3).map(([term]) => term).join(", ");
}

// Texts and thumbnails are included for all rows, or for the listed ones.
const indexByRow = (rows) => rows && new Map(rows.map((row, index) => [row, index]));
const textIndex = indexByRow(data.texts && data.texts.rows);
const thumbnailIndexes = indexByRow(data.thumbnails && data.thumbnails.rows);

export const hasOnlyCardTexts = textIndex !== null;

export function textOf(row) {
  if (!data.texts) return "";
  return data.texts.values[textIndex ? textIndex.get(row) : row] ?? "";
}

/** The cells of a row as pairs of the name of a column and a text. */
export const cellsOf = (row) => (data.cells ?? []).map((column) => [column.column, cellText(column, column.values[row])]);

function cellText({ kind, unit, levels }, value) {
  if (value === null) return "–";
  if (kind === "date") return new Date(value * 864e5).toISOString().slice(0, 10);
  if (levels) return levels[value] ?? "another word";
  const number = formatValue(value);
  return "$£¥".includes(unit) ? `${unit}${number}` : `${number} ${unit}`;
}

/** The index of a row in the image of all thumbnails, which begins with the means; undefined if it is not included. */
export function thumbnailIndex(row) {
  return thumbnailIndexes?.has(row) ? data.thumbnails.n_means + thumbnailIndexes.get(row) : undefined;
}
