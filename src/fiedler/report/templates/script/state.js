// The selections of the reader, and listeners for their changes. Everything that changes on the page depends on these.

import { labels } from "./rows.js";

export const state = {
  theme: "light",
  colouring: "cluster",
  level: null, // the number of clusters of the level, null until the reader has chosen one
  fade: true,
  cluster: null, // the highlighted cluster
  matches: null, // result of the search: 1 for each matching row
  listed: [], // matching rows in the list of results
  hovered: -1, // the row of the tooltip
  marked: -1, // the row that was opened from a card or a search result
  origin: null, // the button from which it was opened
  camera: null, // null until the map has a size
};

const listeners = [];

/** Call a function after any of the named entries has changed. */
export const onChange = (names, listener) => listeners.push({ names, listener });

export function setState(next) {
  const changed = Object.keys(next).filter((name) => state[name] !== next[name]);
  Object.assign(state, next);
  for (const { names, listener } of listeners) if (names.some((name) => changed.includes(name))) listener();
}

/** Whether a row belongs to the highlighted cluster and to the search results, if there are any. */
export function isHighlighted(row) {
  return (state.cluster === null || state.cluster === labels[row]) && (!state.matches || state.matches[row] === 1);
}
