// Actions that are available in several places of the page.

import { centredOn, fitAll } from "./camera.js";
import { byId } from "./dom.js";
import { labels } from "./rows.js";
import { setState, state } from "./state.js";

const ROW_ZOOM = 3; // the minimum zoom at which a single row is shown

/** Highlight one cluster, or clear the highlight if it is this cluster already. */
export function toggleCluster(cluster) {
  setState({ cluster: state.cluster === cluster ? null : cluster });
}

export function clearSelection() {
  setState({ cluster: null, marked: -1, hovered: -1 });
}

export function showAll() {
  setState({ camera: fitAll(state.camera.width, state.camera.height) });
}

/** Centre the map on a row, mark it, show its tooltip and offer a way back. */
export function showRow(row, origin = null) {
  const cluster = state.cluster === labels[row] ? state.cluster : null;
  setState({ cluster, marked: row, camera: centredOn(state.camera, row, ROW_ZOOM), hovered: row });
  goToMap(origin);
}

export function goToMap(origin) {
  setState({ origin });
  byId("stage").scrollIntoView({ block: "nearest" });
}

/** Return to the button from which the map was opened. */
export function goBack() {
  state.origin.scrollIntoView({ block: "center" });
  state.origin.focus({ preventScroll: true });
  setState({ origin: null });
}
