// Controls of the map: colouring, theme and search.

import { showAll, showRow } from "./actions.js";
import { COLOURINGS, setLevel } from "./colours.js";
import { byId, el } from "./dom.js";
import { countNoun, excerpt, formatValue } from "./format.js";
import { swatch } from "./marks.js";
import { clusterName, confidence, customName, data, k, labels, n, nameOf, textOf } from "./rows.js";
import { onChange, setState, state } from "./state.js";

const MAX_RESULTS = 12; // rows listed below the search field
const SEARCH_DELAY = 120; // milliseconds without a key press before the search begins

// ------------------------------------------------------------------------------------------------------------- colour

function startColouring() {
  const available = Object.entries(COLOURINGS).filter(([, colouring]) => colouring);
  const radioButton = ([name, colouring]) => {
    const input = el("input", { type: "radio", name: "colour", value: name, checked: name === state.colouring });
    input.addEventListener("change", () => setState({ colouring: name }));
    return el("label", {}, input, colouring.label);
  };
  byId("colour").append(...available.map(radioButton));
  byId("colour").hidden = available.length < 2;
  byId("fade-label").hidden = !confidence;
  byId("fade").addEventListener("change", (event) => setState({ fade: event.target.checked }));
  // colour shows the confidence already
  onChange(["colouring"], () => (byId("fade").disabled = state.colouring === "confidence"));
}

// -------------------------------------------------------------------------------------------------------------- level

const SIGNIFICANT_BELOW = 0.05;
const IS_THIN = "Their border is thinner than the parts are inside";
const MAY_BE_CHANCE = "Their border is not clearly thinner than the parts are inside";

/** How clear the split is by which a level differs from the one before. */
function levelSentence(number) {
  const fitted = number === k ? "" : ` The cards are about ${countNoun(k, "cluster")}.`;
  if (number === 1) return `All rows are in one cluster.${fitted}`;
  const [parent, first, second] = data.levels.splits[number - 1];
  const p = data.levels.p_values[number - 1];
  const verdict = p < SIGNIFICANT_BELOW ? IS_THIN : MAY_BE_CHANCE;
  const parts = `Clusters ${first} and ${second} are the parts of cluster ${parent} of the level before.`;
  return `${parts} ${verdict} (p = ${formatValue(p)}).${fitted}`;
}

function startLevels() {
  byId("level-label").hidden = !data.levels;
  if (!data.levels) return;
  const numbers = data.levels.clusters.map((_, at) => at + 1);
  const start = Math.min(k, numbers.length);
  const option = (number) => el("option", { value: number, selected: number === start }, String(number));
  byId("level").append(...numbers.map(option));
  const show = (number) => {
    setLevel(number);
    byId("level-note").textContent = levelSentence(number);
    setState({ level: number });
  };
  byId("level").addEventListener("change", (event) => {
    show(Number(event.target.value));
    byId("colour").querySelector("[value=level]").checked = true;
    setState({ colouring: "level", cluster: null });
  });
  onChange(["colouring"], () => (byId("level-note").hidden = state.colouring !== "level"));
  show(start);
}

// -------------------------------------------------------------------------------------------------------------- theme

function startTheme() {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const followSystem = () => setState({ theme: dark.matches ? "dark" : "light" });
  const applyTheme = () => {
    document.documentElement.dataset.theme = state.theme;
    byId("theme").textContent = state.theme === "dark" ? "Light theme" : "Dark theme";
  };
  onChange(["theme"], applyTheme);
  followSystem();
  applyTheme();
  dark.addEventListener("change", followSystem);
  byId("theme").addEventListener("click", () => setState({ theme: state.theme === "dark" ? "light" : "dark" }));
}

// ------------------------------------------------------------------------------------------------------------- search

const field = byId("search");
const results = byId("results");
let searchTexts = null; // lower-case name and text of every row, computed by the first search

function search() {
  const query = field.value.trim().toLowerCase();
  if (!query) {
    results.hidden = true;
    setState({ matches: null, listed: [] });
    return;
  }
  searchTexts ??= Array.from({ length: n }, (_, row) => `${nameOf(row)}\n${textOf(row)}`.toLowerCase());
  const matches = Uint8Array.from(searchTexts, (text) => (text.includes(query) ? 1 : 0));
  const total = matches.reduce((sum, match) => sum + match, 0);
  const listed = firstMatches(matches, MAX_RESULTS);
  showResults(total, listed, query);
  setState({ matches: total ? matches : null, listed });
  showAll();
}

function firstMatches(matches, limit) {
  const rows = [];
  for (let row = matches.indexOf(1); row >= 0 && rows.length < limit; row = matches.indexOf(1, row + 1)) rows.push(row);
  return rows;
}

function showResults(total, rows, query) {
  const count = total === 0 ? "No matches" : `${countNoun(total, "row")} ${total === 1 ? "matches" : "match"}`;
  const more = total > rows.length ? `; the first ${rows.length}:` : "";
  const line = (row) => {
    const open = () => {
      results.hidden = true;
      showRow(row);
    };
    const text = textOf(row) ? el("small", {}, excerpt(textOf(row), query)) : "";
    const parts = [swatch(labels[row]), ` ${nameOf(row)}`, ...clusterLine(labels[row]), text];
    return el("button", { type: "button", onclick: open }, ...parts);
  };
  byId("results-count").textContent = count + more;
  byId("results-rows").replaceChildren(...rows.map(line));
  results.hidden = false;
}

/** The name of a cluster that has one; for others the colour is enough. */
function clusterLine(label) {
  if (!customName(label)) return [];
  return [el("span", { class: "cluster" }, `${customName(label)} `, el("small", {}, clusterName(label)))];
}

function startSearch() {
  let timer = 0;
  const content = data.texts ? "names and texts" : data.rows.ids ? "names" : "row numbers";
  field.placeholder = `Search ${content}`;
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, SEARCH_DELAY);
  });
  field.addEventListener("focus", () => (results.hidden = !field.value.trim()));
  field.closest(".search").addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    field.value = "";
    field.focus();
    search();
  });
  document.addEventListener("pointerdown", (event) => {
    if (!field.closest(".search").contains(event.target)) results.hidden = true;
  });
}

export function startControls() {
  startTheme();
  startColouring();
  startLevels();
  startSearch();
}
