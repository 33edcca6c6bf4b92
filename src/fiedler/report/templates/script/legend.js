// The legend of colours and opacity.

import { toggleCluster } from "./actions.js";
import { COLOURINGS, confidenceColour, opacity } from "./colours.js";
import { breakable, byId, el } from "./dom.js";
import { formatCount, percent } from "./format.js";
import { dot, thumbnail } from "./marks.js";
import { clusterName, confidence, customName, data, leadingTerms, n } from "./rows.js";
import { onChange, state } from "./state.js";

const OPACITY_STEPS = [0.25, 0.5, 0.75, 1];

function write() {
  const colouring = COLOURINGS[state.colouring];
  if (state.colouring === "confidence") byId("legend").replaceChildren(confidenceScale());
  else byId("legend").replaceChildren(...groups(colouring), opacityScale());
  updateHighlight();
}

/** The colours of confidence, from 0 to 100 % for all data. */
function confidenceScale() {
  const colours = Array.from({ length: 21 }, (_, i) => `rgb(${confidenceColour(i / 20).join(" ")})`);
  const labels = [0, 0.5, 1].map((share) => el("span", {}, percent(share)));
  return el(
    "div",
    { class: "scale" },
    el("p", {}, "Confidence: the largest membership of a row"),
    el("div", { class: "ramp", style: { background: `linear-gradient(to right, ${colours.join(", ")})` } }),
    el("div", { class: "ends" }, ...labels),
  );
}

function groups(colouring) {
  const sizes = new Uint32Array(colouring.last + 1);
  for (let row = 0; row < n; row++) sizes[colouring.values[row]]++;
  const shown = [...sizes.keys()].filter((group) => sizes[group] || group < colouring.last);
  const entry = state.colouring === "cluster" ? clusterEntry : classEntry;
  return shown.map((group) => entry(colouring, group, sizes[group]));
}

function parts(colouring, group, size) {
  const name = el("span", {}, ...breakable(colouring.name(group)));
  return [dot(group, colouring.last), name, el("span", { class: "count" }, formatCount(size))];
}

const classEntry = (colouring, group, size) => el("div", { class: "key" }, ...parts(colouring, group, size));

function clusterEntry(colouring, group, size) {
  const detail = customName(group) ? clusterName(group) : leadingTerms(group);
  const detailLine = detail ? el("span", { class: "detail" }, detail) : "";
  const attributes = { type: "button", class: "key", "data-cluster": group, onclick: () => toggleCluster(group) };
  const picture = data.thumbnails && group < data.thumbnails.n_means ? thumbnail(group, 32) : "";
  return el("button", attributes, ...parts(colouring, group, size), detailLine, picture);
}

/** The opacity of a few confidences, the same in every report. */
function opacityScale() {
  if (!confidence || !state.fade) return "";
  const step = (share) => {
    const mark = el("i", { style: { opacity: opacity(share) }, "aria-hidden": "true" });
    return el("span", {}, mark, percent(share));
  };
  return el("div", { class: "fading" }, el("p", {}, "Opacity shows the confidence of a row"), ...OPACITY_STEPS.map(step));
}

function updateHighlight() {
  for (const button of byId("legend").querySelectorAll("[data-cluster]")) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.cluster) === state.cluster));
  }
}

export function startLegend() {
  onChange(["colouring", "fade", "level"], write);
  onChange(["cluster"], updateHighlight);
  write();
}
