// What a reader can do from several places.

import { centred, whole } from "./camera.js";
import { byId } from "./dom.js";
import { labels } from "./rows.js";
import { change, state } from "./state.js";

const CLOSE = 3; // the zoom at which a single row is shown

/** Highlight a cluster alone, or let go of it if it already is. */
export function light(cluster) {
  change({ cluster: state.cluster === cluster ? null : cluster });
}

export function letGo() {
  change({ cluster: null, marked: -1, hovered: -1 });
}

export function showAll() {
  change({ camera: whole(state.camera.width, state.camera.height) });
}

/** Go to a row: in the middle of the map, with a ring around it, told of, and with a way back. */
export function show(row, from = null) {
  const cluster = state.cluster === labels[row] ? state.cluster : null;
  change({ cluster, marked: row, camera: centred(state.camera, row, CLOSE), hovered: row });
  goToMap(from);
}

export function goToMap(from) {
  change({ from });
  byId("stage").scrollIntoView({ block: "nearest" });
}

/** Back to the button from which one came to the map. */
export function goBack() {
  state.from.scrollIntoView({ block: "center" });
  state.from.focus({ preventScroll: true });
  change({ from: null });
}
