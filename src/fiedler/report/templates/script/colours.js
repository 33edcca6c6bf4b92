// What a row looks like. The colours themselves come with the data: plots and page share them.

import { called, className, confidence, data, k, labels, truth } from "./rows.js";

const { groups, none, sureness, faintest } = data.palette;

/** The colour of a group; the one past the last is of rows in no group. More groups than colours begin again. */
export const colourOf = (group, last) => (group === last ? none : groups[group % groups.length]);

export const toRgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/** The colour of a confidence, from 0 to 1 on one scale for all data. */
export function ramp(share) {
  const at = share * (sureness.length - 1);
  const low = Math.min(Math.floor(at), sureness.length - 2);
  const [one, other] = [toRgb(sureness[low]), toRgb(sureness[low + 1])];
  return one.map((part, i) => Math.round(part + (at - low) * (other[i] - part)));
}

/** Opacity is confidence, on one scale for all data; a row that no cluster claims is still seen. */
export const opacity = (share) => Math.max(faintest, share);

/** What rows can be coloured by: a number for each row, and what the numbers are. */
export const COLOURINGS = {
  cluster: { label: "Cluster", of: labels, last: k, name: called },
  truth: truth && { label: "Class", of: truth, last: data.truth.length, name: className },
  confidence: confidence && { label: "Confidence", of: confidence },
};

/** The colours of a colouring, by number. */
export function coloursBy({ last }) {
  if (last === undefined) return Array.from({ length: 256 }, (_, sure) => ramp(sure / 255));
  return Array.from({ length: last + 1 }, (_, group) => toRgb(colourOf(group, last)));
}
