// Numbers as people read them.

const NARROW = "\u00a0"; // a space that no line is broken at

const thousands = new Intl.NumberFormat("en");

export const count = (number) => thousands.format(number);

export const counted = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

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
