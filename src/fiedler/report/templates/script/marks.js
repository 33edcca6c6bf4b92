// Small marks that represent a cluster or a row.

import { groupHues } from "./colours.js";
import { el } from "./dom.js";
import { data, k } from "./rows.js";

/** A dot in the colour of a group; group `last` is that of unassigned rows. */
export const dot = (group, last) =>
  el("span", { class: "swatch", style: groupHues(group, last), "aria-hidden": "true" });

export const swatch = (label) => dot(label, k);

/** The thumbnail with an index in the image of all thumbnails, its longer side `side` pixels; "" without an index. */
export function thumbnail(index, side) {
  if (index === undefined) return "";
  const { width, height, columns, lines } = data.thumbnails;
  const scale = side / Math.max(width, height);
  const [column, line] = [index % columns, Math.floor(index / columns)];
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

/** Make the image of all thumbnails available to the style sheet. */
export function startThumbnails() {
  const sheet = data.thumbnails && `url(data:image/png;base64,${data.thumbnails.png})`;
  if (sheet) document.documentElement.style.setProperty("--sprite", sheet);
}
