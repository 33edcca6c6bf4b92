// Small charts of values over whole numbers.

import { el, svg } from "./dom.js";
import { brief, tick } from "./words.js";

const BOX = { width: 360, height: 190, left: 56, right: 10, top: 12, bottom: 26 };
const MOST_DOTS = 60;
const MOST_NUMBERS = 10;

/**
 * A figure of a line, or of stems.
 * `errors` are drawn around the values, one place may be `chosen`, and the gap after another is shaded.
 */
export function chart({ title, note, at, values, errors = null, chosen = null, gap = null, stems = false }) {
  const known = at.map((x, i) => ({ x, y: values[i], error: errors ? errors[i] : 0 })).filter(({ y }) => y !== null);
  const scales = scalesOf(at, known, stems);
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${BOX.width} ${BOX.height}`, role: "img", "aria-label": `${title}. ${note}` },
    ...grid(scales),
    ...numbers(at, scales),
    ...(gap === null ? [] : [shade(gap, scales)]),
    ...(stems ? [] : [line(known, scales)]),
    ...known.flatMap((point) => marks(point, scales, { errors, stems, isChosen: point.x === chosen, n: at.length })),
  );
  return el("figure", {}, el("figcaption", {}, title, el("span", {}, note)), picture);
}

/** From values to places in the box. Stems stand on zero; a single value has room around it. */
function scalesOf(at, known, stems) {
  let low = Math.min(...known.map(({ y, error }) => y - error));
  let high = Math.max(...known.map(({ y, error }) => y + error));
  if (stems) low = Math.min(0, low);
  if (high === low) {
    high += Math.abs(high) || 1;
    low -= stems ? 0 : Math.abs(low) || 1;
  }
  const [first, last] = [at[0], at[at.length - 1]];
  const across = (BOX.width - BOX.left - BOX.right) / Math.max(last - first, 1);
  const up = (BOX.height - BOX.top - BOX.bottom) / (high - low);
  return {
    low,
    high,
    x: (value) => BOX.left + (value - first) * across,
    y: (value) => BOX.height - BOX.bottom - (value - low) * up,
  };
}

function grid({ low, high, y }) {
  return [low, (low + high) / 2, high].flatMap((value) => [
    svg("line", { class: "axis", x1: BOX.left, x2: BOX.width - BOX.right, y1: y(value), y2: y(value) }),
    svg("text", { x: BOX.left - 8, y: y(value) + 4, "text-anchor": "end" }, tick(value, high - low)),
  ]);
}

function numbers(at, { x }) {
  const every = Math.ceil(at.length / MOST_NUMBERS);
  const shown = at.filter((_, i) => i % every === 0);
  return shown.map((one) => svg("text", { x: x(one), y: BOX.height - 8, "text-anchor": "middle" }, String(one)));
}

function shade(gap, { low, high, x, y }) {
  return svg("rect", { class: "gap", x: x(gap), width: x(gap + 1) - x(gap), y: y(high), height: y(low) - y(high) });
}

function line(known, { x, y }) {
  return svg("polyline", { class: "line", points: known.map((point) => `${x(point.x)},${y(point.y)}`).join(" ") });
}

/** The stem or error bar of a value, and its dot where there are not too many. */
function marks(point, { low, x, y }, { errors, stems, isChosen, n }) {
  const kind = isChosen ? " chosen" : "";
  const drawn = [];
  if (n > MOST_DOTS && !isChosen) return drawn;
  if (errors || stems) {
    const [from, to] = errors ? [point.y - point.error, point.y + point.error] : [low, point.y];
    drawn.push(svg("line", { class: `stem${kind}`, x1: x(point.x), x2: x(point.x), y1: y(from), y2: y(to) }));
  }
  const told = svg("title", {}, `${point.x}: ${brief(point.y)}`);
  drawn.push(svg("circle", { class: `dot${kind}`, cx: x(point.x), cy: y(point.y), r: isChosen ? 4.5 : 2.8 }, told));
  return drawn;
}
