// The data: what is known of each row and of each cluster.

import { byId } from "./dom.js";

export const data = JSON.parse(byId("data").textContent);

export const n = data.n_rows;
export const k = data.n_clusters;
export const xs = words(data.rows.x);
export const ys = words(data.rows.y);
export const labels = words(data.rows.labels); // k: in no cluster
export const truth = words(data.rows.truth);
export const confidence = bytes(data.rows.confidence); // of 255

function bytes(text) {
  if (text === null) return null;
  const letters = atob(text);
  const values = new Uint8Array(letters.length);
  for (let i = 0; i < values.length; i++) values[i] = letters.charCodeAt(i);
  return values;
}

/** Little-endian numbers of two bytes, on any machine. */
function words(text) {
  if (text === null) return null;
  const halves = bytes(text);
  const values = new Uint16Array(halves.length / 2);
  for (let i = 0; i < values.length; i++) values[i] = halves[2 * i] + 256 * halves[2 * i + 1];
  return values;
}

export const nameOf = (row) => (data.rows.ids ? data.rows.ids[row] : `Row ${row}`);
export const sureness = (row) => confidence[row] / 255;
export const className = (code) => data.truth[code];
export const clusterName = (label) => (label === k ? "No cluster" : `Cluster ${label}`);

/** What a cluster was called by those who know; nothing where nobody did. */
export const givenName = (label) => (label === k ? "" : (data.clusters[label].name ?? ""));

export const called = (label) => givenName(label) || clusterName(label);

/** The first terms of a cluster; nothing where it has none. */
export function leading(label) {
  return label === k ? "" : data.clusters[label].terms.slice(0, 3).map(([term]) => term).join(", ");
}

// Texts and thumbnails are there for all rows, or for those that are listed.
const placeIn = (rows) => rows && new Map(rows.map((row, place) => [row, place]));
const textPlaces = placeIn(data.texts && data.texts.rows);
const thumbPlaces = placeIn(data.thumbnails && data.thumbnails.rows);

export const textsAreListed = textPlaces !== null;

export function textOf(row) {
  if (!data.texts) return "";
  return data.texts.values[textPlaces ? textPlaces.get(row) : row] ?? "";
}

/** The place of a row's thumbnail in the sheet, which begins with the means; undefined where it has none. */
export function thumbOf(row) {
  return thumbPlaces?.has(row) ? data.thumbnails.n_means + thumbPlaces.get(row) : undefined;
}
