// Numbers and texts for display.

const NO_BREAK_SPACE = "\u00a0";
const EXCERPT_CONTEXT = 16; // characters shown before a search term

const thousands = new Intl.NumberFormat("en");

export const formatCount = (number) => thousands.format(number);

export const pluralize = (number, noun) => (number === 1 ? noun : `${noun}s`);

export const countNoun = (number, noun) => `${formatCount(number)} ${pluralize(number, noun)}`;

/** A text from shortly before the first occurrence of a query (in lower case), so that its first line contains it. */
export function excerpt(text, query) {
  const position = text.toLowerCase().indexOf(query);
  if (position <= 2 * EXCERPT_CONTEXT) return text;
  const start = text.indexOf(" ", position - EXCERPT_CONTEXT) + 1; // the beginning of a word, if there is one
  return `…${text.slice(start > 0 && start <= position ? start : position)}`;
}

/** A share in percent, with one more digit if rounding would give 0 or 100 %. */
export function percent(share) {
  if (share > 0 && share < 0.001) return `< 0.1${NO_BREAK_SPACE}%`;
  const needsDigit = (share > 0 && share < 0.1) || (share > 0.99 && share < 0.9995);
  return `${(100 * share).toFixed(needsDigit ? 1 : 0)}${NO_BREAK_SPACE}%`;
}

/** A difference of means, in words. */
export const standardDeviations = (difference) =>
  `${Math.abs(difference).toFixed(1)} standard deviations ${difference < 0 ? "below" : "above"} the mean of all rows`;

/** Any plain value as a short text. */
export function formatValue(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return value;
  if (typeof value !== "number") return JSON.stringify(value);
  const size = Math.abs(value);
  if (Number.isInteger(value)) return size < 10000 ? String(value) : formatCount(value);
  return size >= 1e6 || size < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(4)));
}

/** A value on an axis, with as many digits as the range of the axis needs. */
export function formatTick(value, range) {
  const digits = Math.min(4, Math.max(0, 2 - Math.floor(Math.log10(range))));
  const isExtreme = Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3;
  const text = value === 0 ? "0" : isExtreme ? value.toExponential(1) : value.toFixed(digits);
  return text.replace("-", "−");
}
