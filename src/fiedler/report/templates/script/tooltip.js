// What is known of the row that is pointed at.

import { onScreen } from "./camera.js";
import { byId, el } from "./dom.js";
import { swatch, thumb } from "./marks.js";
import {
  called,
  className,
  clusterName,
  confidence,
  givenName,
  labels,
  nameOf,
  sureness,
  textOf,
  thumbOf,
  truth,
} from "./rows.js";
import { state, whenever } from "./state.js";
import { percent } from "./words.js";

const ASIDE = 16; // pixels from the row
const EDGE = 4; // pixels from the edge

const tooltip = byId("tooltip");

function about(row) {
  const sure = confidence ? ` · ${percent(sureness(row))} sure` : "";
  return [
    el("strong", {}, nameOf(row)),
    el("span", {}, swatch(labels[row]), ` ${called(labels[row])}${sure}`),
    givenName(labels[row]) ? el("small", {}, clusterName(labels[row])) : "",
    truth ? el("p", {}, `Class ${className(truth[row])}`) : "",
    thumb(thumbOf(row), 72),
    textOf(row) ? el("p", {}, textOf(row)) : "",
  ].filter((part) => part !== "");
}

function tell() {
  tooltip.hidden = state.hovered < 0;
  if (tooltip.hidden) return;
  tooltip.replaceChildren(...about(state.hovered));
  place();
}

/** Beside the row, on the side where there is room. */
function place() {
  if (tooltip.hidden) return;
  const { x, y } = onScreen(state.camera, state.hovered);
  const { width, height } = tooltip.getBoundingClientRect();
  const left = x + ASIDE + width > state.camera.width ? x - ASIDE - width : x + ASIDE;
  const within = (at, size, room) => Math.max(EDGE, Math.min(at, room - size - EDGE));
  const at = `${within(left, width, state.camera.width)}px, ${within(y - 20, height, state.camera.height)}px`;
  tooltip.style.transform = `translate(${at})`;
}

export function startTooltip() {
  whenever(["hovered"], tell);
  whenever(["camera"], place);
}
