// The columns of the data by cluster, and the rows on which methods and views differ.

import { showRow } from "./actions.js";
import { breakable, byId, el } from "./dom.js";
import { countNoun, percent, standardDeviations } from "./format.js";
import { swatch } from "./marks.js";
import { clusterName, data, displayName, k, labels, nameOf } from "./rows.js";

const FULL_COLOUR_AT = 2; // standard deviations
const LEFT_OUT = "left out";

export function writeProfiles() {
  const lines = data.profiles ?? [];
  byId("columns").hidden = !lines.length;
  if (!lines.length) return;
  const notes = ["Means of numbers and dates, and shares of words, in each cluster and in all rows."];
  notes.push("The stronger the colour, the more standard deviations a cluster is above (blue) or below (red) all rows.");
  if (lines.some(({ used }) => !used)) notes.push("Rows were not compared by columns in brackets.");
  byId("columns-note").textContent = notes.join(" ");
  const clusters = Array.from({ length: k }, (_, label) => label).filter((label) => data.clusters[label].size);
  const head = clusters.map((label) => el("th", { scope: "col", title: displayName(label) }, swatch(label), ` ${label}`));
  byId("profiles").append(
    el(
      "table",
      { class: "profiles" },
      el("thead", {}, el("tr", {}, el("th"), el("th", { scope: "col" }, "all rows"), ...head)),
      el("tbody", {}, ...lines.flatMap((line, at) => profileRows(line, lines[at - 1], clusters))),
    ),
  );
}

/** The row of a number, or of a word after a row with the name of its column. */
function profileRows(line, previous, clusters) {
  const { column, level, used, overall, values, differences } = line;
  const title = used ? column : `(${column})`;
  const cells = clusters.map((label) => cell(values[label], differences[label]));
  const row = (kind, name, ...parts) => el("tr", {}, el("th", { scope: "row", class: kind }, ...breakable(name)), ...parts);
  const all = el("td", { class: "overall" }, overall);
  if (level === null) return [row("", title, all, ...cells)];
  const isFirst = !previous || previous.level === null || previous.column !== column;
  const heading = isFirst ? [row("", title, el("td", { colspan: clusters.length + 1 }))] : [];
  return [...heading, row("level", level, all, ...cells)];
}

function cell(value, difference) {
  const part = `${Math.min(60, (60 * Math.abs(difference)) / FULL_COLOUR_AT)}%`;
  const kind = difference < 0 ? "lower" : "higher";
  return el("td", { class: kind, title: standardDeviations(difference), style: { "--part": part } }, value);
}

/** The columns of the table, how each was used, and why. */
export function writeUses() {
  const uses = data.columns ?? [];
  byId("uses").hidden = !uses.length;
  if (!uses.length) return;
  const compared = uses.filter(({ use }) => use !== LEFT_OUT);
  byId("uses-note").textContent = `Rows were compared by ${compared.length} of ${countNoun(uses.length, "column")}.`;
  const line = ({ name, use, why }) => {
    const cells = [use, why].map((part) => el("td", {}, part));
    return el("tr", { class: use === LEFT_OUT ? "out" : "" }, el("th", { scope: "row" }, ...breakable(name)), ...cells);
  };
  const head = ["Column", "used as", ""].map((name) => el("th", { scope: "col" }, name));
  byId("uses-table").append(
    el("table", { class: "uses" }, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...uses.map(line))),
  );
}

export function writeContested() {
  const { contested } = data;
  byId("contested").hidden = !contested || !contested.count;
  if (byId("contested").hidden) return;
  const { count, rows } = contested;
  const some = rows.length < count ? ` These are the ${rows.length} on which the fewest agree.` : "";
  byId("contested-note").textContent =
    `On ${countNoun(count, "row")} (${percent(count / data.n_rows)}), less than half of the methods and views agree ` +
    `with the cluster.${some}`;
  byId("contested-rows").append(...rows.map(contestedRow));
}

function contestedRow({ row, agreement }) {
  const name = el("span", { class: "name" }, nameOf(row));
  const detail = el("span", { class: "or" }, `${clusterName(labels[row])}: ${percent(agreement)} agree`);
  const open = (event) => showRow(row, event.currentTarget);
  return el("li", {}, el("button", { type: "button", onclick: open }, swatch(labels[row]), " ", name, detail));
}
