// Small marks that stand for a cluster or a row.

import { colourOf } from "./colours.js";
import { el } from "./dom.js";
import { data, k } from "./rows.js";

export const dot = (colour) => el("span", { class: "swatch", style: { "--hue": colour }, "aria-hidden": "true" });

export const swatch = (label) => dot(colourOf(label, k));

/** A thumbnail by its place in the sheet, its longer side that many pixels; nothing where there is none. */
export function thumb(place, side) {
  if (place === undefined) return "";
  const { width, height, columns, lines } = data.thumbnails;
  const scale = side / Math.max(width, height);
  const [column, line] = [place % columns, Math.floor(place / columns)];
  return el("span", {
    class: scale > 2 ? "thumb coarse" : "thumb",
    style: {
      width: `${width * scale}px`,
      height: `${height * scale}px`,
      "background-size": `${columns * width * scale}px ${lines * height * scale}px`,
      "background-position": `${-column * width * scale}px ${-line * height * scale}px`,
    },
  });
}

/** The sheet of thumbnails, once for all. */
export function startMarks() {
  const sheet = data.thumbnails && `url(data:image/png;base64,${data.thumbnails.png})`;
  if (sheet) document.documentElement.style.setProperty("--sprite", sheet);
}
