// A card for each cluster: its size, what sets it apart, its typical and its doubtful rows.

import { goToMap, light, show } from "./actions.js";
import { colourOf } from "./colours.js";
import { byId, el } from "./dom.js";
import { swatch, thumb } from "./marks.js";
import {
  clusterName,
  confidence,
  data,
  givenName,
  k,
  leading,
  n,
  nameOf,
  textOf,
  textsAreListed,
  thumbOf,
} from "./rows.js";
import { state, whenever } from "./state.js";
import { count, counted, percent } from "./words.js";

const SNIPPET = 240; // characters of a text that is whole as texts go

function notes() {
  const told = [];
  if (data.clusters.some((one) => one.typical.length)) {
    const closest = "the closest to the cluster’s mean";
    if (confidence) told.push(`Typical rows are the most confident, then ${closest}.`);
    else told.push(`Typical rows are ${closest}; this model gives no memberships, so none is called unsure.`);
  }
  if (textsAreListed) {
    const here = count(data.texts.rows.length);
    told.push(`There are too many texts to carry along: only the ${here} on cards are here, and found by search.`);
  } else if (data.texts && data.texts.length < SNIPPET) {
    told.push(`Texts are cut after ${data.texts.length} characters, since there are many.`);
  }
  if (data.thumbnails && data.thumbnails.rows.length < n) {
    told.push(`${count(data.thumbnails.rows.length)} of ${count(n)} images are here, those on cards among them.`);
  }
  return told.join(" ");
}

function card(one) {
  const words = givenName(one.label) || leading(one.label);
  const choose = (event) => {
    light(one.label);
    if (state.cluster !== null) goToMap(event.currentTarget);
  };
  const size = `${counted(one.size, "row")} · ${percent(one.share)}`;
  return el(
    "article",
    { class: "card", "data-card": one.label, style: { "--hue": colourOf(one.label, k) } },
    el(
      "header",
      {},
      swatch(one.label),
      el("h3", {}, el("button", { type: "button", onclick: choose }, words || clusterName(one.label))),
    ),
    el("p", { class: "size" }, words ? `${clusterName(one.label)} · ${size}` : size),
    one.confidence === null ? "" : meter(one.confidence),
    one.terms.length ? terms(one.terms) : "",
    one.features.length ? features(one.features) : "",
    ...(one.size === 0 ? [el("p", { class: "note" }, "No row is in this cluster.")] : members(one)),
  );
}

const meter = (share) =>
  el("div", { class: "meter" }, el("i", { style: { "--part": `${100 * share}%` } }), `${percent(share)} sure`);

const terms = (pairs) =>
  el("ul", { class: "terms", "aria-label": "Leading terms" }, ...pairs.map(([term]) => el("li", {}, term)));

/** Features as bars to the right and to the left of everybody's mean. */
function features(rows) {
  const widest = Math.max(1, ...rows.map(([, apart]) => Math.abs(apart)));
  const bar = (apart) => {
    const side = apart < 0 ? { right: "50%" } : { left: "50%" };
    return el("span", { class: "bar" }, el("i", { style: { ...side, width: `${(50 * Math.abs(apart)) / widest}%` } }));
  };
  const line = ([name, apart, mean]) => {
    const told = `${apart > 0 ? "+" : "−"}${Math.abs(apart).toFixed(1)}`;
    const cells = [bar(apart), told, String(mean)].map((part) => el("td", {}, part));
    return el("tr", {}, el("th", { scope: "row" }, name), ...cells);
  };
  const head = ["Feature", "", "sd", "mean"].map((name) => el("th", { scope: "col" }, name));
  return el(
    "table",
    { class: "features" },
    el("caption", { class: "unseen" }, "Features that differ most from all rows, in standard deviations, and means"),
    el("thead", {}, el("tr", {}, ...head)),
    el("tbody", {}, ...rows.map(line)),
  );
}

// --------------------------------------------------------------------------------------------------------------- rows

const members = (one) => (data.thumbnails ? pictures(one) : lists(one));

const rowButton = (row, attributes, ...children) =>
  el("button", { type: "button", ...attributes, onclick: (event) => show(row, event.currentTarget) }, ...children);

const rival = (sure, other, share) =>
  `${percent(sure)} sure, or ${givenName(other) || `cluster ${other}`} (${percent(share)})`;

function pictures(one) {
  const picture = (row, label, caption = "") =>
    rowButton(row, { "aria-label": label, title: label }, thumb(thumbOf(row), 40), caption);
  const typical = one.typical.map((row) => picture(row, nameOf(row)));
  const doubtful = one.doubtful.map(({ row, confidence: sure, other, share }) => {
    const label = `${nameOf(row)}: ${rival(sure, other, share)}`;
    return picture(row, label, el("span", { class: "or" }, `or ${other}`));
  });
  const mean = el("div", {}, el("h4", {}, "Mean"), thumb(one.label, 64));
  const beside = el("div", {}, el("h4", {}, "Typical"), el("div", { class: "pictures" }, ...typical));
  const below = doubtful.length ? [el("h4", {}, "Least sure"), el("div", { class: "pictures" }, ...doubtful)] : [];
  return [el("div", { class: "mean-line" }, mean, beside), ...below];
}

function lists(one) {
  const item = (row, tail = "") => {
    const text = textOf(row) ? el("span", { class: "text" }, textOf(row)) : "";
    return el("li", {}, rowButton(row, {}, el("span", { class: "name" }, nameOf(row)), tail, text));
  };
  const doubt = ({ confidence: sure, other, share }) => el("span", { class: "or" }, rival(sure, other, share));
  const listed = (title, kind, items) =>
    items.length ? [el("h4", {}, title), el("ul", { class: kind }, ...items)] : [];
  return [
    ...listed("Typical", data.texts ? "members" : "members short", one.typical.map((row) => item(row))),
    ...listed("Least sure", "members", one.doubtful.map((each) => item(each.row, doubt(each)))),
  ];
}

function press() {
  for (const each of byId("cards").children) {
    const isLit = Number(each.dataset.card) === state.cluster;
    each.classList.toggle("lit", isLit);
    each.querySelector("h3 button").setAttribute("aria-pressed", String(isLit));
  }
}

export function startCards() {
  byId("clusters-note").textContent = notes();
  byId("cards").append(...data.clusters.map(card));
  whenever(["cluster"], press);
  press();
}
