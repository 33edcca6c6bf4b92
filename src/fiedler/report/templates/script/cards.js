// One card per cluster: its size, how it differs from the others, its typical and its least confident rows.

import { goToMap, showRow, toggleCluster } from "./actions.js";
import { groupHues } from "./colours.js";
import { breakable, byId, el, svg } from "./dom.js";
import { countNoun, formatCount, percent, standardDeviations } from "./format.js";
import { swatch, thumbnail } from "./marks.js";
import {
  clusterName,
  confidence,
  customName,
  data,
  hasOnlyCardTexts,
  k,
  leadingTerms,
  n,
  nameOf,
  textOf,
  thumbnailIndex,
} from "./rows.js";
import { onChange, state } from "./state.js";

const MAX_TEXT_LENGTH = 240; // characters; shorter texts were cut because there are many

function notes() {
  const sentences = [];
  if (data.clusters.some((cluster) => cluster.typical.length)) {
    const closest = "closest to the mean of their cluster";
    if (confidence) sentences.push(`Typical rows are the most confident ones and, among equals, those ${closest}.`);
    else if (k === 1) sentences.push(`Typical rows are those ${closest}.`);
    else sentences.push(`Typical rows are those ${closest}; this model gives no memberships and so no confidence.`);
  }
  if (data.clusters.some((cluster) => cluster.contrasts.length)) {
    sentences.push("Bars show how far the mean of a cluster is from that of all rows, in standard deviations (sd).");
  }
  if (data.clusters.some((cluster) => cluster.shape)) {
    sentences.push("Lines show the means of all columns, from the first to the last, above or below those of all rows.");
  }
  if (hasOnlyCardTexts) {
    const included = formatCount(data.texts.rows.length);
    sentences.push(`Only the ${included} texts on cards are included and searched, because there are too many texts.`);
  } else if (data.texts && data.texts.length < MAX_TEXT_LENGTH) {
    sentences.push(`Texts are cut to ${data.texts.length} characters, because there are many.`);
  }
  if (data.thumbnails && data.thumbnails.rows.length < n) {
    const included = formatCount(data.thumbnails.rows.length);
    sentences.push(`${included} of ${formatCount(n)} images are included, among them those on cards.`);
  }
  return sentences.join(" ");
}

function card(cluster) {
  const heading = customName(cluster.label) || leadingTerms(cluster.label);
  const select = (event) => {
    toggleCluster(cluster.label);
    if (state.cluster !== null) goToMap(event.currentTarget);
  };
  const size = `${countNoun(cluster.size, "row")} · ${percent(cluster.share)}`;
  return el(
    "article",
    { class: "card", "data-card": cluster.label, style: groupHues(cluster.label, k) },
    el(
      "header",
      {},
      swatch(cluster.label),
      el("h3", {}, el("button", { type: "button", onclick: select }, ...breakable(heading || clusterName(cluster.label)))),
    ),
    el("p", { class: "size" }, heading ? `${clusterName(cluster.label)} · ${size}` : size),
    cluster.confidence === null ? "" : meter(cluster.confidence),
    cluster.shape ? drawShape(cluster.shape) : "",
    cluster.contrasts.length ? contrasts(cluster.contrasts) : "",
    cluster.terms.length ? terms(cluster.terms) : "",
    ...(cluster.size === 0 ? [el("p", { class: "note" }, "This cluster has no rows.")] : members(cluster)),
  );
}

const meter = (share) =>
  el("div", { class: "meter" }, el("i", { style: { "--part": `${100 * share}%` } }), `confidence ${percent(share)}`);

const terms = (pairs) =>
  el("ul", { class: "terms", "aria-label": "Leading terms" }, ...pairs.map(([term]) => el("li", {}, term)));

/** The means of all columns of a cluster as a line, above or below those of all rows, which are the line in the middle. */
function drawShape(values) {
  const [width, height] = [300, 60];
  const widest = Math.max(1, ...data.clusters.flatMap(({ shape }) => shape ?? []).map(Math.abs));
  const x = (at) => ((at * width) / (values.length - 1)).toFixed(1);
  const y = (value) => (height / 2 - (value * (height / 2 - 2)) / widest).toFixed(1);
  const title = "The means of the columns, from the first to the last, above or below those of all rows";
  return svg(
    "svg",
    { class: "shape", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": title },
    svg("line", { x1: 0, x2: width, y1: height / 2, y2: height / 2 }),
    svg("polyline", { points: values.map((value, at) => `${x(at)},${y(value)}`).join(" ") }),
  );
}

/** Whether the name of a column would have to be broken inside words, or into many lines, beside its values. */
const isLong = (column) => column.length > 26 || column.split(/[\s_/=.:]/).some((part) => part.length > 11);

/** Columns in which a cluster differs most, as bars to the right or to the left of the mean of all rows. */
function contrasts(entries) {
  const widest = Math.max(1, ...entries.map(({ difference }) => Math.abs(difference)));
  const bar = (difference) => {
    const side = difference < 0 ? { right: "50%" } : { left: "50%" };
    const width = `${(50 * Math.abs(difference)) / widest}%`;
    return el("span", { class: "bar" }, el("i", { style: { ...side, width } }));
  };
  const line = ({ column, value, overall, difference, lift }) => {
    const title = lift === null ? standardDeviations(difference) : `${lift.toFixed(1)} times as many as in all rows`;
    const cells = [bar(difference), value, overall ?? ""].map((part) => el("td", {}, part));
    const name = el("th", { scope: "row", colspan: isLong(column) ? 4 : null }, ...breakable(column));
    if (!isLong(column)) return [el("tr", { title }, name, ...cells)];
    return [el("tr", { title, class: "above" }, name), el("tr", { title }, el("td"), ...cells)]; // a line of its own
  };
  const head = ["Column", "", "here", "all rows"].map((name) => el("th", { scope: "col" }, name));
  return el(
    "table",
    { class: "contrasts" },
    el("caption", { class: "visually-hidden" }, "Columns in which the cluster differs most, here and in all rows"),
    el("thead", {}, el("tr", {}, ...head)),
    el("tbody", {}, ...entries.flatMap(line)),
  );
}

// --------------------------------------------------------------------------------------------------------------- rows

const members = (cluster) => (data.thumbnails ? pictures(cluster) : lists(cluster));

const rowButton = (row, attributes, ...children) =>
  el("button", { type: "button", ...attributes, onclick: (event) => showRow(row, event.currentTarget) }, ...children);

const alternative = ({ confidence: share, other, share: otherShare }) =>
  `confidence ${percent(share)}, or ${customName(other) || `cluster ${other}`} (${percent(otherShare)})`;

function pictures(cluster) {
  const picture = (row, label, caption = "") =>
    rowButton(row, { "aria-label": label, title: label }, thumbnail(thumbnailIndex(row), 40), caption);
  const typical = cluster.typical.map((row) => picture(row, nameOf(row)));
  const leastConfident = cluster.least_confident.map((entry) => {
    const label = `${nameOf(entry.row)}: ${alternative(entry)}`;
    return picture(entry.row, label, el("span", { class: "or" }, `or ${entry.other}`));
  });
  const mean = el("div", {}, el("h4", {}, "Mean"), thumbnail(cluster.label, 64));
  const typicalList = el("div", {}, el("h4", {}, "Typical"), el("div", { class: "pictures" }, ...typical));
  const leastConfidentList = leastConfident.length
    ? [el("h4", {}, "Least confident"), el("div", { class: "pictures" }, ...leastConfident)]
    : [];
  return [el("div", { class: "mean-line" }, mean, typicalList), ...leastConfidentList];
}

function lists(cluster) {
  const item = (row, detail = "") => {
    const text = textOf(row) ? el("span", { class: "text" }, textOf(row)) : "";
    return el("li", {}, rowButton(row, {}, el("span", { class: "name" }, nameOf(row)), detail, text));
  };
  const uncertain = (entry) => item(entry.row, el("span", { class: "or" }, alternative(entry)));
  const list = (title, kind, items) => (items.length ? [el("h4", {}, title), el("ul", { class: kind }, ...items)] : []);
  return [
    ...list("Typical", data.texts ? "members" : "members short", cluster.typical.map((row) => item(row))),
    ...list("Least confident", "members", cluster.least_confident.map(uncertain)),
  ];
}

function updateHighlight() {
  for (const node of byId("cards").children) {
    const isSelected = Number(node.dataset.card) === state.cluster;
    node.classList.toggle("highlighted", isSelected);
    node.querySelector("h3 button").setAttribute("aria-pressed", String(isSelected));
  }
}

export function startCards() {
  byId("clusters-note").textContent = notes();
  byId("cards").append(...data.clusters.map(card));
  onChange(["cluster"], updateHighlight);
  updateHighlight();
}
