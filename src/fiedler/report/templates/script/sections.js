// The other sections of the page, from top to bottom.

import { chart } from "./charts.js";
import { byId, el } from "./dom.js";
import { countNoun, formatCount, formatValue, percent, pluralize } from "./format.js";
import { className, confidence, data, k, n } from "./rows.js";

function figures(target, pairs) {
  target.append(...pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

// ------------------------------------------------------------------------------------------------------------- header

const HAS_NO_CLUSTERS = k === 1 && data.evidence !== null && data.evidence.by === "one cluster";
const NOT_FOUND = "No clusters found; give n_clusters to split the rows anyway.";

export function writeHeader() {
  const isGraph = data.n_features === null;
  const rows = isGraph ? `${countNoun(n, "node")} of a graph` : countNoun(n, "row");
  const columns = isGraph ? "" : ` with ${countNoun(data.n_features, data.column ?? "feature")}`;
  const duration = data.seconds === null ? "" : ` in ${formatValue(Number(data.seconds.toPrecision(2)))}\u00a0s`;
  const found = HAS_NO_CLUSTERS
    ? `${NOT_FOUND} ${data.model.name} looked for them`
    : `${data.model.name} found ${countNoun(k, "cluster")}`;
  byId("lede").textContent = `${found} among ${rows}${columns}${duration}.`;
  figures(byId("figures"), headerFigures());
  byId("caution").textContent = data.caution ?? "";
  byId("caution").hidden = !data.caution;
  const limit = percent(data.uncertain_below);
  const fading = confidence
    ? ` The fainter a dot, the lower the confidence of the row; a row of confidence ${limit} or less is uncertain.`
    : "";
  const distances = "Rows that are close to each other are similar; distances between far groups mean little.";
  byId("map-note").textContent = `Every dot is a row. Positions: ${data.layout}.${fading} ${distances}`;
}

function headerFigures() {
  const pairs = [[pluralize(n, "row"), formatCount(n)]];
  if (!HAS_NO_CLUSTERS) pairs.push([pluralize(k, "cluster"), formatCount(k)]);
  if (data.n_unassigned) pairs.push(["unassigned", formatCount(data.n_unassigned)]);
  if (confidence) pairs.push(["mean confidence", percent(data.confidence)]);
  if (confidence) pairs.push(["uncertain rows", percent(data.uncertain_share)]);
  if (data.agreement) pairs.push(["accuracy against the classes", percent(data.agreement.scores.accuracy)]);
  return pairs;
}

// ----------------------------------------------------------------------------------------------------------- evidence

const EVIDENCE = [
  ["stability", "Stability", "Agreement of clusterings of random subsets, by number of clusters; 1 is perfect."],
  ["score", "Score", "Stability, modularity and valleys of the density together, by number of clusters."],
  ["valley", "Valleys", "Fall of the density at the borders of clusters, by number of clusters."],
];
const HISTORY = [
  ["objective", "Objective", ({ maximize }) => `Objective by iteration; it is ${maximize ? "maximised" : "minimised"}.`],
  ["likelihood", "Log-likelihood", () => "Log-likelihood by iteration, the part of the objective that fits the densities."],
  [
    "penalty",
    "Penalty",
    ({ maximize }) => `Penalty by iteration, ${maximize ? "subtracted from" : "added to"} the rest of the objective.`,
  ],
];

const SINGLE = ", since the rows have no more structure than a single cloud";

function evidenceCharts() {
  const { evidence } = data;
  if (!evidence || evidence.candidates.length < 2) return [];
  return EVIDENCE.filter(([key]) => evidence[key]).map(([key, title, note]) =>
    chart({
      title,
      note: `${note} Chosen: ${evidence.n_clusters}${evidence.n_clusters === 1 ? SINGLE : ""}.`,
      at: evidence.candidates,
      values: evidence[key],
      errors: key === "stability" ? evidence.stability_error : null,
      chosen: evidence.n_clusters,
    }),
  );
}

function spectrumCharts() {
  if (!data.spectrum) return [];
  const { values, gap: widest } = data.spectrum;
  const chosen = data.evidence && data.evidence.n_clusters < values.length ? data.evidence.n_clusters : null;
  const gap = chosen ?? widest; // the chosen number, so that this chart marks the same one as the others
  const shaded = chosen === null ? "the widest gap is after" : "shaded is the gap after the chosen number of clusters,";
  const note = `The smallest eigenvalues of the graph’s normalised Laplacian; ${shaded}\u00a0${gap}.`;
  return [chart({ title: "Spectrum", note, at: values.map((_, i) => i + 1), values, gap, stems: true })];
}

function historyCharts() {
  if (!data.history) return [];
  const { iterations: at, values } = data.history;
  const varies = (column) => column && column.some((value) => value !== null && value !== column[0]);
  return HISTORY.filter(([key]) => varies(values[key])).map(([key, title, note]) =>
    chart({ title, note: note(data.history), at, values: values[key] }),
  );
}

export function writeEvidence() {
  const charts = [...evidenceCharts(), ...spectrumCharts(), ...historyCharts()];
  byId("charts").append(...charts);
  byId("evidence").hidden = !charts.length && !data.explanation;
  byId("explanation").hidden = !data.explanation;
  byId("explanation").querySelector("pre").textContent = data.explanation ?? "";
}

// ---------------------------------------------------------------------------------------------------------- agreement

const DARK_CELL_SHARE = 0.6; // cells with a larger share have light text

export function writeAgreement() {
  byId("agreement").hidden = !data.agreement;
  if (!data.agreement) return;
  const { scores, clusters, counts } = data.agreement;
  figures(byId("scores"), Object.entries(scores).map(([name, value]) => [name, value.toFixed(3)]));
  byId("confusion").hidden = byId("confusion-note").hidden = !counts;
  if (counts) byId("confusion").append(confusion(clusters, counts));
}

function confusion(clusters, counts) {
  const column = (label) => el("th", { scope: "col" }, label < 0 ? "none" : String(label));
  const line = (row, code) => {
    const total = row.reduce((sum, value) => sum + value, 0);
    return el("tr", {}, el("th", { scope: "row" }, className(code)), ...row.map((value) => cell(value, value / total)));
  };
  return el(
    "table",
    { class: "confusion" },
    el("caption", { class: "visually-hidden" }, "Number of rows of each class in each cluster"),
    el("thead", {}, el("tr", {}, el("td"), ...clusters.map(column))),
    el("tbody", {}, ...counts.map(line)),
  );
}

function cell(value, share) {
  const kind = value === 0 ? "none" : share > DARK_CELL_SHARE ? "strong" : "";
  return el("td", { class: kind, style: { "--part": `${90 * share}%` } }, formatCount(value));
}

// ----------------------------------------------------------------------------------------------------------- settings

function table(title, pairs) {
  const entries = Object.entries(pairs);
  if (!entries.length) return [];
  const line = ([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, formatValue(value)));
  return [el("div", {}, el("h3", {}, title), el("table", { class: "pairs" }, el("tbody", {}, ...entries.map(line))))];
}

export function writeSettings() {
  const { name, parameters, facts, versions } = data.model;
  const duration = data.seconds === null ? {} : { seconds: data.seconds };
  byId("tables").append(
    ...table(`Parameters of ${name}`, parameters),
    ...table("Fit", { ...facts, ...duration }),
    ...table("Settings", data.settings),
    ...table("Versions", versions),
  );
  byId("reproduce").textContent = data.reproduce;
  const selfContained = "This file is self-contained: it loads nothing and sends nothing.";
  byId("foot").textContent = `Created by fiedler ${versions.fiedler}. ${selfContained}`;
}
