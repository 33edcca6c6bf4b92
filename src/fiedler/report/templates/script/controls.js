// Beside the map: what to colour by, the theme, the search.

import { show, showAll } from "./actions.js";
import { COLOURINGS } from "./colours.js";
import { byId, el } from "./dom.js";
import { swatch } from "./marks.js";
import { clusterName, confidence, data, givenName, labels, n, nameOf, textOf } from "./rows.js";
import { change, state, whenever } from "./state.js";
import { around, counted } from "./words.js";

const MOST_LISTED = 12;
const PAUSE = 120; // milliseconds without a key, before the search begins

// ------------------------------------------------------------------------------------------------------------- colour

function startColouring() {
  const offered = Object.entries(COLOURINGS).filter(([, way]) => way);
  const choice = ([name, way]) => {
    const input = el("input", { type: "radio", name: "colour", value: name, checked: name === state.colouring });
    input.addEventListener("change", () => change({ colouring: name }));
    return el("label", {}, input, way.label);
  };
  byId("colour").append(...offered.map(choice));
  byId("colour").hidden = offered.length < 2;
  byId("fade-label").hidden = !confidence;
  byId("fade").addEventListener("change", (event) => change({ fade: event.target.checked }));
  whenever(["colouring"], () => (byId("fade").disabled = state.colouring === "confidence")); // shown once is enough
}

// -------------------------------------------------------------------------------------------------------------- theme

function startTheme() {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const follow = () => change({ theme: dark.matches ? "dark" : "light" });
  const wear = () => {
    document.documentElement.dataset.theme = state.theme;
    byId("theme").textContent = state.theme === "dark" ? "Light theme" : "Dark theme";
  };
  whenever(["theme"], wear);
  follow();
  wear();
  dark.addEventListener("change", follow);
  byId("theme").addEventListener("click", () => change({ theme: state.theme === "dark" ? "light" : "dark" }));
}

// ------------------------------------------------------------------------------------------------------------- search

const field = byId("search");
const found = byId("found");
let lower = null; // what is searched in, a text a row; made when it is first needed

function search() {
  const wanted = field.value.trim().toLowerCase();
  if (!wanted) {
    found.hidden = true;
    change({ matches: null, listed: [] });
    return;
  }
  lower ??= Array.from({ length: n }, (_, row) => `${nameOf(row)}\n${textOf(row)}`.toLowerCase());
  const matches = Uint8Array.from(lower, (text) => (text.includes(wanted) ? 1 : 0));
  const total = matches.reduce((sum, one) => sum + one, 0);
  const listed = first(matches, MOST_LISTED);
  list(total, listed, wanted);
  change({ matches: total ? matches : null, listed });
  showAll();
}

function first(matches, most) {
  const rows = [];
  for (let row = matches.indexOf(1); row >= 0 && rows.length < most; row = matches.indexOf(1, row + 1)) rows.push(row);
  return rows;
}

function list(total, rows, wanted) {
  const lead = total === 0 ? "Nothing matches" : `${counted(total, "row")} ${total === 1 ? "matches" : "match"}`;
  const more = total > rows.length ? `; the first ${rows.length}:` : "";
  const line = (row) => {
    const go = () => {
      found.hidden = true;
      show(row);
    };
    const text = textOf(row) ? el("small", {}, around(textOf(row), wanted)) : "";
    const parts = [swatch(labels[row]), ` ${nameOf(row)}`, ...cluster(labels[row]), text];
    return el("button", { type: "button", onclick: go }, ...parts);
  };
  byId("found-count").textContent = lead + more;
  byId("found-rows").replaceChildren(...rows.map(line));
  found.hidden = false;
}

/** The name of a cluster that has one; of others the colour tells enough. */
function cluster(label) {
  if (!givenName(label)) return [];
  return [el("span", { class: "of" }, `${givenName(label)} `, el("small", {}, clusterName(label)))];
}

function startSearch() {
  let timer = 0;
  const kind = data.texts ? "names and texts" : data.rows.ids ? "names" : "row numbers";
  field.placeholder = `Search ${kind}`;
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, PAUSE);
  });
  field.addEventListener("focus", () => (found.hidden = !field.value.trim()));
  field.closest(".search").addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    field.value = "";
    field.focus();
    search();
  });
  document.addEventListener("pointerdown", (event) => {
    if (!field.closest(".search").contains(event.target)) found.hidden = true;
  });
}

export function startControls() {
  startTheme();
  startColouring();
  startSearch();
}
