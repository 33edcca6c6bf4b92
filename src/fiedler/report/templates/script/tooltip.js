// The tooltip of the row under the pointer.

import { toScreen } from "./camera.js";
import { breakable, byId, el } from "./dom.js";
import { percent } from "./format.js";
import { swatch, thumbnail } from "./marks.js";
import {
  cellsOf,
  className,
  clusterName,
  confidence,
  confidenceOf,
  customName,
  displayName,
  labels,
  nameOf,
  textOf,
  thumbnailIndex,
  truth,
} from "./rows.js";
import { onChange, state } from "./state.js";

const OFFSET = 16; // pixels from the row
const MARGIN = 4; // pixels from the edge of the map

const tooltip = byId("tooltip");

function content(row) {
  const share = confidence ? ` · confidence ${percent(confidenceOf(row))}` : "";
  return [
    el("strong", {}, nameOf(row)),
    el("span", {}, swatch(labels[row]), " ", ...breakable(`${displayName(labels[row])}${share}`)),
    customName(labels[row]) ? el("small", {}, clusterName(labels[row])) : "",
    truth ? el("p", {}, `Class ${className(truth[row])}`) : "",
    thumbnail(thumbnailIndex(row), 72),
    cells(row),
    textOf(row) ? el("p", {}, textOf(row)) : "",
  ].filter((part) => part !== "");
}

/** The values of the row in the columns that differ most between clusters. */
function cells(row) {
  const line = ([name, text]) => el("tr", {}, el("th", { scope: "row" }, ...breakable(name)), el("td", {}, text));
  const pairs = cellsOf(row);
  return pairs.length ? el("table", { class: "cells" }, el("tbody", {}, ...pairs.map(line))) : "";
}

function update() {
  tooltip.hidden = state.hovered < 0;
  if (tooltip.hidden) return;
  tooltip.replaceChildren(...content(state.hovered));
  position();
}

/** Place the tooltip beside the row, on the side with more room. */
function position() {
  if (tooltip.hidden) return;
  const { x, y } = toScreen(state.camera, state.hovered);
  const { width, height } = tooltip.getBoundingClientRect();
  const left = x + OFFSET + width > state.camera.width ? x - OFFSET - width : x + OFFSET;
  const clamp = (value, size, available) => Math.max(MARGIN, Math.min(value, available - size - MARGIN));
  const corner = `${clamp(left, width, state.camera.width)}px, ${clamp(y - 20, height, state.camera.height)}px`;
  tooltip.style.transform = `translate(${corner})`;
}

export function startTooltip() {
  onChange(["hovered"], update);
  onChange(["camera"], position);
}
