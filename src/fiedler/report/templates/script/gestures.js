// Mouse, fingers and keys on the map. The page must always be free to scroll: one finger scrolls it, two move the map;
// the wheel scrolls it too, until the map has been pressed and as long as the mouse stays there, or with Ctrl or ⌘.

import { goBack, letGo, light, showAll } from "./actions.js";
import { moved, zoomed, zoomedInTheMiddle } from "./camera.js";
import { radiusIn } from "./discs.js";
import { byId } from "./dom.js";
import { canvas } from "./map.js";
import { rowAt } from "./nearest.js";
import { labels } from "./rows.js";
import { change, state, whenever } from "./state.js";

const NEAR = { mouse: 9, pen: 12, touch: 22 }; // pixels within which a row is meant
const STILL = 3; // pixels that a click may travel
const STEP = 60; // pixels an arrow key moves by
const HINT = 1600; // milliseconds

const stage = byId("stage");
const pressed = new Map(); // pointers that are down, by number: where they are
let travelled = 0;
let engaged = false; // whether the wheel is the map's
let hintTimer = 0;

const move = (dx, dy) => change({ camera: moved(state.camera, dx, dy) });
const zoom = (factor) => change({ camera: zoomedInTheMiddle(state.camera, factor) });
const apart = (one, other) => Math.hypot(one.x - other.x, one.y - other.y);

function placeOf(event) {
  const box = canvas.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

function pointAt(event) {
  const within = Math.max(NEAR[event.pointerType] ?? NEAR.mouse, radiusIn(state.camera) + 2);
  change({ hovered: rowAt(state.camera, placeOf(event), within) });
}

// ----------------------------------------------------------------------------------------------------------- pointers

function press(event) {
  pressed.set(event.pointerId, placeOf(event));
  travelled = 0;
  engaged = true;
  unhint();
  if (event.pointerType !== "touch") canvas.setPointerCapture(event.pointerId);
}

function travel(event) {
  const last = pressed.get(event.pointerId);
  if (!last) {
    pointAt(event);
    return;
  }
  const now = placeOf(event);
  travelled += apart(now, last);
  const other = [...pressed].find(([id]) => id !== event.pointerId);
  if (other) pinch(last, now, other[1]);
  else if (event.pointerType !== "touch" && travelled > STILL) drag(last, now);
  pressed.set(event.pointerId, now);
}

function drag(last, now) {
  canvas.classList.add("dragging");
  change({ hovered: -1 });
  move(now.x - last.x, now.y - last.y);
}

/** One of two fingers has moved: the map grows with their distance and goes where their middle goes. */
function pinch(last, now, still) {
  const middle = { x: (now.x + still.x) / 2, y: (now.y + still.y) / 2 };
  const grown = zoomed(state.camera, middle.x, middle.y, apart(now, still) / Math.max(apart(last, still), 1));
  change({ hovered: -1, camera: moved(grown, (now.x - last.x) / 2, (now.y - last.y) / 2) });
}

function release(event) {
  const alone = pressed.delete(event.pointerId) && pressed.size === 0;
  canvas.classList.remove("dragging");
  if (!alone || event.type !== "pointerup" || travelled > STILL) return;
  pointAt(event);
  if (event.pointerType === "touch") return; // a finger cannot hover, so a tap only tells
  if (state.hovered >= 0) light(labels[state.hovered]);
  else change({ cluster: null });
}

function leave(event) {
  if (event.pointerType === "touch") return; // a finger leaves with every tap
  engaged = false;
  change({ hovered: -1 });
}

// -------------------------------------------------------------------------------------------------------------- wheel

function wheel(event) {
  const meant = event.ctrlKey || event.metaKey; // a pinch on a trackpad comes with Ctrl
  if (!meant && !engaged) {
    hint();
    return;
  }
  const pixels = event.deltaY * (event.deltaMode === 1 ? 16 : 1);
  const { x, y } = placeOf(event);
  const camera = zoomed(state.camera, x, y, Math.exp(-Math.max(-60, Math.min(60, pixels)) * (meant ? 0.01 : 0.004)));
  if (!meant && camera.scale === state.camera.scale) return; // at its end the page scrolls on
  event.preventDefault();
  change({ camera });
}

/** Say for a moment how the wheel is had. */
function hint() {
  clearTimeout(hintTimer);
  byId("hint").classList.add("shown");
  hintTimer = setTimeout(unhint, HINT);
}

const unhint = () => byId("hint").classList.remove("shown");

// --------------------------------------------------------------------------------------------------------------- keys

const KEYS = {
  ArrowLeft: () => move(STEP, 0),
  ArrowRight: () => move(-STEP, 0),
  ArrowUp: () => move(0, STEP),
  ArrowDown: () => move(0, -STEP),
  "+": () => zoom(1.4),
  "=": () => zoom(1.4),
  "-": () => zoom(1 / 1.4),
  0: showAll,
  Escape: letGo,
};

function key(event) {
  if (!KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  KEYS[event.key]();
}

export function startGestures() {
  canvas.addEventListener("pointerdown", press);
  canvas.addEventListener("pointermove", travel);
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release); // the page has begun to scroll
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("wheel", wheel, { passive: false });
  canvas.addEventListener("keydown", key);
  canvas.addEventListener("dblclick", (event) => {
    const { x, y } = placeOf(event);
    change({ camera: zoomed(state.camera, x, y, event.shiftKey ? 0.5 : 2) });
  });
  for (const name of ["touchstart", "touchmove"]) {
    canvas.addEventListener(name, (event) => event.touches.length > 1 && event.preventDefault(), { passive: false });
  }
  byId("zoom-in").addEventListener("click", () => zoom(1.6));
  byId("zoom-out").addEventListener("click", () => zoom(1 / 1.6));
  byId("zoom-all").addEventListener("click", showAll);
  byId("back").addEventListener("click", goBack);
  whenever(["from"], () => (byId("back").hidden = state.from === null));
  whenever(["hovered"], () => canvas.classList.toggle("pointing", state.hovered >= 0));
}
