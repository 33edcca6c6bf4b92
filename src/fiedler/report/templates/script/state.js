// What the reader has chosen, and who wants to know when it changes. Nothing else on the page changes by itself.

import { labels } from "./rows.js";

export const state = {
  theme: "light",
  colouring: "cluster",
  fade: true,
  cluster: null, // the one that is highlighted
  matches: null, // of the search: 1 for each row that is found
  listed: [], // rows found that are listed
  hovered: -1, // the row that the tooltip tells of
  marked: -1, // the row that was gone to
  from: null, // the button it was gone to from
  camera: null, // none before the map is laid out
};

const listeners = [];

/** Call a function after any of these has changed. */
export const whenever = (names, call) => listeners.push({ names, call });

export function change(next) {
  const changed = Object.keys(next).filter((name) => state[name] !== next[name]);
  Object.assign(state, next);
  for (const { names, call } of listeners) if (names.some((name) => changed.includes(name))) call();
}

/** Whether a row is in the highlighted cluster and among those found, as far as there are such. */
export function isLit(row) {
  return (state.cluster === null || state.cluster === labels[row]) && (!state.matches || state.matches[row] === 1);
}
