// Colours and opacity of rows. The palette comes with the data, so that plots and page share it.

import { className, confidence, data, displayName, groups, k, labels, n, truth } from "./rows.js";
import { state } from "./state.js";

const { unassigned, confidence: confidenceColours, min_opacity: minOpacity } = data.colours;
const PALETTES = { light: data.colours.groups, dark: data.colours.groups_on_dark }; // by theme

/** The colour of a group; group `last` has the colour of unassigned rows. Colours repeat if there are many groups. */
function groupColour(group, last, theme) {
  const palette = PALETTES[theme];
  return group === last ? unassigned : palette[group % palette.length];
}

/** The colour of a group in both themes, as styles of an element. */
export const groupHues = (group, last) => ({
  "--light-hue": groupColour(group, last, "light"),
  "--dark-hue": groupColour(group, last, "dark"),
});

export const toRgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/** The colour of a confidence from 0 to 1, on the same scale for all data. */
export function confidenceColour(share) {
  const position = share * (confidenceColours.length - 1);
  const lower = Math.min(Math.floor(position), confidenceColours.length - 2);
  const [from, to] = [toRgb(confidenceColours[lower]), toRgb(confidenceColours[lower + 1])];
  return from.map((part, i) => Math.round(part + (position - lower) * (to[i] - part)));
}

/** Opacity is confidence, on the same scale for all data; even rows with low memberships stay visible. */
export const opacity = (share) => Math.max(minOpacity, share);

const level = data.levels && { label: "Level", values: new Uint16Array(n), last: 0, name: levelName };

function levelName(cluster) {
  return cluster === level.last ? "No cluster" : `Cluster ${cluster}`;
}

/** Colour rows by the clusters of another level. */
export function setLevel(number) {
  const clusterOf = [...data.levels.clusters[number - 1], number]; // the last one of unassigned rows
  level.last = number;
  for (let row = 0; row < n; row++) level.values[row] = clusterOf[groups[row]];
}

/** What rows can be coloured by: a number for each row, and the names of the numbers. */
export const COLOURINGS = {
  cluster: { label: "Cluster", values: labels, last: k, name: displayName },
  level,
  truth: truth && { label: "Class", values: truth, last: data.truth.length, name: className },
  confidence: confidence && { label: "Confidence", values: confidence },
};

/** The colours of a colouring, by number. */
export function colourTable({ last }) {
  if (last === undefined) return Array.from({ length: 256 }, (_, value) => confidenceColour(value / 255));
  return Array.from({ length: last + 1 }, (_, group) => toRgb(groupColour(group, last, state.theme)));
}
