// The page's other sections, from top to bottom.

import { chart } from "./charts.js";
import { byId, el } from "./dom.js";
import { className, confidence, data, k, n } from "./rows.js";
import { brief, count, counted, noun, percent } from "./words.js";

function figures(target, pairs) {
  target.append(...pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

// --------------------------------------------------------------------------------------------------------------- head

export function writeHead() {
  const size = data.n_features === null ? "a graph" : counted(data.n_features, data.column ?? "feature");
  const took = data.seconds === null ? "" : ` It took ${brief(Number(data.seconds.toPrecision(2)))}\u00a0s.`;
  const found = `${data.model.name} found ${counted(k, "cluster")} among ${counted(n, "row")} of ${size}.`;
  byId("lede").textContent = found + took;
  figures(byId("figures"), headFigures());
  const faded = confidence ? " Rows are the fainter, the less sure they are of their cluster." : "";
  const near = "Near means alike; distances between far groups mean little.";
  byId("map-note").textContent = `Every dot is a row; places by ${data.plane}.${faded} ${near}`;
}

function headFigures() {
  const pairs = [[noun(n, "row"), count(n)], [noun(k, "cluster"), count(k)]];
  if (data.n_unassigned) pairs.push(["in no cluster", count(data.n_unassigned)]);
  if (confidence) pairs.push(["mean confidence", percent(data.confidence)]);
  if (confidence) pairs.push(["at most half sure", percent(data.in_doubt)]);
  if (data.agreement) pairs.push(["accuracy against the classes", percent(data.agreement.scores.accuracy)]);
  return pairs;
}

// ----------------------------------------------------------------------------------------------------------- evidence

const EVIDENCE = [
  ["stability", "Stability", "How far clusters of random parts agree, for every number of clusters; 1 is perfect."],
  ["gaps", "Eigengap", "How far the graph’s spectrum jumps after K eigenvalues, for every number of clusters."],
  ["modularity", "Modularity", "Of the communities on parts of the data, for every number of clusters."],
];
const HISTORY = [
  ["objective", "Objective", "By iteration."],
  ["likelihood", "Log-likelihood", "The part of the objective that speaks for the densities."],
  ["penalty", "Penalty", "The part that speaks for smoothness on the graph; it is subtracted."],
];

const numbered = (values) => values.map((_, i) => i + 1);

function evidenceCharts() {
  const found = data.evidence;
  if (!found || found.candidates.length < 2) return [];
  return EVIDENCE.filter(([key]) => found[key]).map(([key, title, note]) =>
    chart({
      title,
      note: `${note} ${found.n_clusters} were chosen.`,
      at: found.candidates,
      values: found[key],
      errors: key === "stability" ? found.stability_error : null,
      chosen: found.n_clusters,
    }),
  );
}

function spectrumCharts() {
  if (!data.spectrum) return [];
  const { values, gap } = data.spectrum;
  const note = `The smallest eigenvalues of the graph’s normalised Laplacian; the widest gap is after\u00a0${gap}.`;
  return [chart({ title: "Spectrum", note, at: numbered(values), values, gap, stems: true })];
}

function historyCharts() {
  const changes = (values) => values && values.some((value) => value !== null && value !== values[0]);
  const kept = HISTORY.filter(([key]) => data.history && changes(data.history[key]));
  return kept.map(([key, title, note]) => {
    const values = data.history[key];
    return chart({ title, note, at: numbered(values), values });
  });
}

export function writeEvidence() {
  const charts = [...evidenceCharts(), ...spectrumCharts(), ...historyCharts()];
  byId("charts").append(...charts);
  byId("evidence").hidden = !charts.length && !data.story;
  byId("story").hidden = !data.story;
  byId("story").querySelector("pre").textContent = data.story ?? "";
}

// ---------------------------------------------------------------------------------------------------------- agreement

const STRONG = 0.6; // the share from which a cell is dark

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
    el("caption", { class: "unseen" }, "Rows of each class in each cluster"),
    el("thead", {}, el("tr", {}, el("td"), ...clusters.map(column))),
    el("tbody", {}, ...counts.map(line)),
  );
}

function cell(value, share) {
  const kind = value === 0 ? "none" : share > STRONG ? "strong" : "";
  return el("td", { class: kind, style: { "--part": `${90 * share}%` } }, count(value));
}

// ----------------------------------------------------------------------------------------------------------- settings

function table(title, pairs) {
  const entries = Object.entries(pairs);
  if (!entries.length) return [];
  const line = ([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, brief(value)));
  return [el("div", {}, el("h3", {}, title), el("table", { class: "pairs" }, el("tbody", {}, ...entries.map(line))))];
}

export function writeSettings() {
  const { name, parameters, facts, versions } = data.model;
  const took = data.seconds === null ? {} : { seconds: data.seconds };
  byId("tables").append(
    ...table(`Parameters of ${name}`, parameters),
    ...table("The fit", { ...facts, ...took }),
    ...table("Settings", data.settings),
    ...table("Versions", versions),
  );
  byId("reproduce").textContent = data.reproduce;
  const complete = "This file is complete: it loads nothing and sends nothing.";
  byId("foot").textContent = `Made by fiedler ${versions.fiedler}. ${complete}`;
}
