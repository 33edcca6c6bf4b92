// What the colours and the opacity of rows mean.

import { light } from "./actions.js";
import { colourOf, COLOURINGS, opacity, ramp } from "./colours.js";
import { byId, el } from "./dom.js";
import { dot } from "./marks.js";
import { clusterName, confidence, givenName, leading, n } from "./rows.js";
import { state, whenever } from "./state.js";
import { count, percent } from "./words.js";

const STEPS = [0.25, 0.5, 0.75, 1];

function write() {
  const way = COLOURINGS[state.colouring];
  if (state.colouring === "confidence") byId("legend").replaceChildren(scale());
  else byId("legend").replaceChildren(...groups(way), fading());
  press();
}

/** The colours of confidence, from 0 to 100 % whatever the data. */
function scale() {
  const colours = Array.from({ length: 21 }, (_, i) => `rgb(${ramp(i / 20).join(" ")})`);
  const ends = [0, 0.5, 1].map((share) => el("span", {}, percent(share)));
  return el(
    "div",
    { class: "scale" },
    el("p", {}, "How sure a row is of its cluster"),
    el("div", { class: "ramp", style: { background: `linear-gradient(to right, ${colours.join(", ")})` } }),
    el("div", { class: "ends" }, ...ends),
  );
}

function groups(way) {
  const sizes = new Uint32Array(way.last + 1);
  for (let row = 0; row < n; row++) sizes[way.of[row]]++;
  const shown = [...sizes.keys()].filter((group) => sizes[group] || group < way.last);
  return shown.map((group) => (state.colouring === "cluster" ? clusterEntry : entry)(way, group, sizes[group]));
}

function parts(way, group, size) {
  return [dot(colourOf(group, way.last)), el("span", {}, way.name(group)), el("span", { class: "count" }, count(size))];
}

const entry = (way, group, size) => el("div", { class: "key" }, ...parts(way, group, size));

function clusterEntry(way, group, size) {
  const below = givenName(group) ? clusterName(group) : leading(group);
  const words = below ? el("span", { class: "what" }, below) : "";
  const attributes = { type: "button", class: "key", "data-cluster": group, onclick: () => light(group) };
  return el("button", attributes, ...parts(way, group, size), words);
}

/** The opacity of a few confidences: the same in every report. */
function fading() {
  if (!confidence || !state.fade) return "";
  const step = (share) => {
    const mark = el("i", { style: { opacity: opacity(share) }, "aria-hidden": "true" });
    return el("span", {}, mark, percent(share));
  };
  return el("div", { class: "fading" }, el("p", {}, "Opacity: how sure a row is of its cluster"), ...STEPS.map(step));
}

function press() {
  for (const button of byId("legend").querySelectorAll("[data-cluster]")) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.cluster) === state.cluster));
  }
}

export function startLegend() {
  whenever(["colouring", "fade"], write);
  whenever(["cluster"], press);
  write();
}
