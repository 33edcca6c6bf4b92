// Mouse, touch and keyboard input on the map. The page can always be scrolled: one finger scrolls it, two move the map.
// The wheel scrolls the page too, unless Ctrl or ⌘ is pressed, or the map was clicked and the mouse has not left it.

import { clearSelection, goBack, showAll, toggleCluster } from "./actions.js";
import { moved, zoomed, zoomedAtCentre } from "./camera.js";
import { byId } from "./dom.js";
import { canvas } from "./map.js";
import { nearestRow } from "./picking.js";
import { pointRadius } from "./points.js";
import { labels } from "./rows.js";
import { onChange, setState, state } from "./state.js";

const PICK_RADIUS = { mouse: 9, pen: 12, touch: 22 }; // pixels between the pointer and the row it selects
const MAX_CLICK_TRAVEL = 3; // pixels; longer movements are drags
const ARROW_KEY_STEP = 60; // pixels
const HINT_DURATION = 1600; // milliseconds

const pressed = new Map(); // the positions of pressed pointers by their id
let travelled = 0; // pixels since the last press
let wheelZooms = false; // whether the map was clicked and the mouse has not left it
let hintTimer = 0;

const move = (dx, dy) => setState({ camera: moved(state.camera, dx, dy) });
const zoom = (factor) => setState({ camera: zoomedAtCentre(state.camera, factor) });
const distance = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);

function positionOf(event) {
  const box = canvas.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

function hover(event) {
  const radius = Math.max(PICK_RADIUS[event.pointerType] ?? PICK_RADIUS.mouse, pointRadius(state.camera) + 2);
  setState({ hovered: nearestRow(state.camera, positionOf(event), radius) });
}

// ----------------------------------------------------------------------------------------------------------- pointers

function onPress(event) {
  pressed.set(event.pointerId, positionOf(event));
  travelled = 0;
  wheelZooms = true;
  hideHint();
  if (event.pointerType !== "touch") canvas.setPointerCapture(event.pointerId);
}

function onMove(event) {
  const last = pressed.get(event.pointerId);
  if (!last) {
    hover(event);
    return;
  }
  const now = positionOf(event);
  travelled += distance(now, last);
  const other = [...pressed].find(([id]) => id !== event.pointerId);
  if (other) pinch(last, now, other[1]);
  else if (event.pointerType !== "touch" && travelled > MAX_CLICK_TRAVEL) drag(last, now);
  pressed.set(event.pointerId, now);
}

function drag(last, now) {
  canvas.classList.add("dragging");
  setState({ hovered: -1 });
  move(now.x - last.x, now.y - last.y);
}

/** One of two fingers has moved: zoom by the change of their distance and move with their midpoint. */
function pinch(last, now, other) {
  const middle = { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 };
  const factor = distance(now, other) / Math.max(distance(last, other), 1);
  const enlarged = zoomed(state.camera, middle.x, middle.y, factor);
  setState({ hovered: -1, camera: moved(enlarged, (now.x - last.x) / 2, (now.y - last.y) / 2) });
}

function onRelease(event) {
  const wasLast = pressed.delete(event.pointerId) && pressed.size === 0;
  canvas.classList.remove("dragging");
  if (!wasLast || event.type !== "pointerup" || travelled > MAX_CLICK_TRAVEL) return;
  hover(event);
  if (event.pointerType === "touch") return; // a finger cannot hover, so a tap only shows the tooltip
  if (state.hovered >= 0) toggleCluster(labels[state.hovered]);
  else setState({ cluster: null });
}

function onLeave(event) {
  if (event.pointerType === "touch") return; // a finger leaves after every tap
  wheelZooms = false;
  setState({ hovered: -1 });
}

// -------------------------------------------------------------------------------------------------------------- wheel

function onWheel(event) {
  const hasModifier = event.ctrlKey || event.metaKey; // a pinch on a trackpad is sent with Ctrl
  if (!hasModifier && !wheelZooms) {
    showHint();
    return;
  }
  const pixels = event.deltaY * (event.deltaMode === 1 ? 16 : 1);
  const { x, y } = positionOf(event);
  const speed = hasModifier ? 0.01 : 0.004;
  const camera = zoomed(state.camera, x, y, Math.exp(-Math.max(-60, Math.min(60, pixels)) * speed));
  if (!hasModifier && camera.scale === state.camera.scale) return; // at the limit of the zoom the page scrolls
  event.preventDefault();
  setState({ camera });
}

/** Show for a moment how to zoom with the wheel. */
function showHint() {
  clearTimeout(hintTimer);
  byId("hint").classList.add("shown");
  hintTimer = setTimeout(hideHint, HINT_DURATION);
}

const hideHint = () => byId("hint").classList.remove("shown");

// --------------------------------------------------------------------------------------------------------------- keys

const KEY_ACTIONS = {
  ArrowLeft: () => move(ARROW_KEY_STEP, 0),
  ArrowRight: () => move(-ARROW_KEY_STEP, 0),
  ArrowUp: () => move(0, ARROW_KEY_STEP),
  ArrowDown: () => move(0, -ARROW_KEY_STEP),
  "+": () => zoom(1.4),
  "=": () => zoom(1.4),
  "-": () => zoom(1 / 1.4),
  0: showAll,
  Escape: clearSelection,
};

function onKey(event) {
  if (!KEY_ACTIONS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  KEY_ACTIONS[event.key]();
}

export function startGestures() {
  canvas.addEventListener("pointerdown", onPress);
  canvas.addEventListener("pointermove", onMove);
  canvas.addEventListener("pointerup", onRelease);
  canvas.addEventListener("pointercancel", onRelease); // the page begins to scroll
  canvas.addEventListener("pointerleave", onLeave);
  canvas.addEventListener("wheel", onWheel, { passive: false });
  canvas.addEventListener("keydown", onKey);
  canvas.addEventListener("dblclick", (event) => {
    const { x, y } = positionOf(event);
    setState({ camera: zoomed(state.camera, x, y, event.shiftKey ? 0.5 : 2) });
  });
  for (const name of ["touchstart", "touchmove"]) {
    canvas.addEventListener(name, (event) => event.touches.length > 1 && event.preventDefault(), { passive: false });
  }
  byId("zoom-in").addEventListener("click", () => zoom(1.6));
  byId("zoom-out").addEventListener("click", () => zoom(1 / 1.6));
  byId("zoom-all").addEventListener("click", showAll);
  byId("back").addEventListener("click", goBack);
  onChange(["origin"], () => (byId("back").hidden = state.origin === null));
  onChange(["hovered"], () => canvas.classList.toggle("pointing", state.hovered >= 0));
}
