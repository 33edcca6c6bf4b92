// Numbers as people read them.

const NARROW = "\u00a0"; // a space that no line is broken at

const thousands = new Intl.NumberFormat("en");

export const count = (number) => thousands.format(number);

export const noun = (number, one) => (number === 1 ? one : `${one}s`);

export const counted = (number, one) => `${count(number)} ${noun(number, one)}`;

const BEFORE = 16; // letters that lead to a word that is looked for

/** A text from shortly before the first place of what is wanted, in small letters, so that its line shows it. */
export function around(text, wanted) {
  const at = text.toLowerCase().indexOf(wanted);
  if (at <= 2 * BEFORE) return text;
  const start = text.indexOf(" ", at - BEFORE) + 1; // a whole word, if one begins there
  return `…${text.slice(start > 0 && start <= at ? start : at)}`;
}

/** A share in percent, with a digit more where rounding would say none or all. */
export function percent(share) {
  if (share > 0 && share < 0.001) return `< 0.1${NARROW}%`;
  const fine = (share > 0 && share < 0.1) || (share > 0.99 && share < 0.9995);
  return `${(100 * share).toFixed(fine ? 1 : 0)}${NARROW}%`;
}

/** Any plain value in a few letters. */
export function brief(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return value;
  if (typeof value !== "number") return JSON.stringify(value);
  const size = Math.abs(value);
  if (Number.isInteger(value)) return size < 10000 ? String(value) : count(value);
  return size >= 1e6 || size < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(4)));
}

/** A value with as many digits as tell it from others so far apart. */
export function tick(value, apart) {
  const digits = Math.min(4, Math.max(0, 2 - Math.floor(Math.log10(apart))));
  const large = Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3;
  const text = value === 0 ? "0" : large ? value.toExponential(1) : value.toFixed(digits);
  return text.replace("-", "−");
}
