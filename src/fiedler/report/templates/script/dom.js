// Elements of the page. All data enters the page here, as text and never as markup.

export const byId = (id) => document.getElementById(id);

/** Create an element with attributes and children; strings become text, "" and null are left out. */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") node.addEventListener("click", value);
    else if (name === "style") setStyle(node, value);
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== ""));
  return node;
}

/** Set styles one by one, because the policy of the page allows no style attributes from data. */
function setStyle(node, styles) {
  for (const [name, value] of Object.entries(styles)) node.style.setProperty(name, value);
}

/** The parts of a name with places to break a line behind _ / = . and between small and capital letters. */
export function breakable(name) {
  const parts = name.split(/(?<=[_/=.:])|(?<=[a-z])(?=[A-Z])/);
  return parts.flatMap((part, at) => (at ? [el("wbr"), part] : [part]));
}

const SVG_NAMESPACE = byId("svg").namespaceURI; // the only address in the page, and it is never requested

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG_NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** A colour of the style sheet in the current theme. */
export const themeColour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
