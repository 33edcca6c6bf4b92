// Small charts of values over integers.

import { el, svg } from "./dom.js";
import { formatTick, formatValue } from "./format.js";

const BOX = { width: 360, height: 190, left: 56, right: 10, top: 12, bottom: 26 };
const MAX_DOTS = 60; // of more values only the line is drawn
const MAX_TICK_LABELS = 10;

/**
 * A figure of a line, or of stems.
 * `errors` are drawn around the values, the value at `chosen` is highlighted, and the gap after `gap` is shaded.
 */
export function chart({ title, note, at, values, errors = null, chosen = null, gap = null, stems = false }) {
  const points = at.map((x, i) => ({ x, y: values[i], error: errors ? errors[i] : 0 })).filter(({ y }) => y !== null);
  const scales = scalesOf(at, points, stems);
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${BOX.width} ${BOX.height}`, role: "img", "aria-label": `${title}. ${note}` },
    ...grid(scales),
    ...tickLabels(at, scales),
    ...(gap === null ? [] : [shadedGap(gap, scales)]),
    ...(stems ? [] : [line(points, scales)]),
    ...points.flatMap((point) => marks(point, scales, { errors, stems, isChosen: point.x === chosen, n: at.length })),
  );
  return el("figure", {}, el("figcaption", {}, title, el("span", {}, note)), picture);
}

/** Functions from values to positions in the box. Stems start at zero; a single value has a margin on both sides. */
function scalesOf(at, points, stems) {
  let low = Math.min(...points.map(({ y, error }) => y - error));
  let high = Math.max(...points.map(({ y, error }) => y + error));
  if (stems) low = Math.min(0, low);
  if (high === low) {
    high += Math.abs(high) || 1;
    low -= stems ? 0 : Math.abs(low) || 1;
  }
  const [first, last] = [at[0], at[at.length - 1]];
  const xScale = (BOX.width - BOX.left - BOX.right) / Math.max(last - first, 1);
  const yScale = (BOX.height - BOX.top - BOX.bottom) / (high - low);
  return {
    low,
    high,
    x: (value) => BOX.left + (value - first) * xScale,
    y: (value) => BOX.height - BOX.bottom - (value - low) * yScale,
  };
}

function grid({ low, high, y }) {
  return [low, (low + high) / 2, high].flatMap((value) => [
    svg("line", { class: "axis", x1: BOX.left, x2: BOX.width - BOX.right, y1: y(value), y2: y(value) }),
    svg("text", { x: BOX.left - 8, y: y(value) + 4, "text-anchor": "end" }, formatTick(value, high - low)),
  ]);
}

function tickLabels(at, { x }) {
  const step = Math.ceil(at.length / MAX_TICK_LABELS);
  const shown = at.filter((_, i) => i % step === 0);
  return shown.map((value) => svg("text", { x: x(value), y: BOX.height - 8, "text-anchor": "middle" }, String(value)));
}

function shadedGap(gap, { low, high, x, y }) {
  return svg("rect", { class: "gap", x: x(gap), width: x(gap + 1) - x(gap), y: y(high), height: y(low) - y(high) });
}

function line(points, { x, y }) {
  return svg("polyline", { class: "line", points: points.map((point) => `${x(point.x)},${y(point.y)}`).join(" ") });
}

/** The stem or error bar of a value, and its dot if there are not too many. */
function marks(point, { low, x, y }, { errors, stems, isChosen, n }) {
  const kind = isChosen ? " chosen" : "";
  const nodes = [];
  if (n > MAX_DOTS && !isChosen) return nodes;
  if (errors || stems) {
    const [from, to] = errors ? [point.y - point.error, point.y + point.error] : [low, point.y];
    nodes.push(svg("line", { class: `stem${kind}`, x1: x(point.x), x2: x(point.x), y1: y(from), y2: y(to) }));
  }
  const title = svg("title", {}, `${point.x}: ${formatValue(point.y)}`);
  nodes.push(svg("circle", { class: `dot${kind}`, cx: x(point.x), cy: y(point.y), r: isChosen ? 4.5 : 2.8 }, title));
  return nodes;
}
