// Elements of the page. Whatever comes from data enters here, as text, never as markup.

export const byId = (id) => document.getElementById(id);

/** An element with attributes and children; strings become text, nothing ("" or null) is left out. */
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

/** Styles one by one: the page's policy allows no style attribute from data. */
function setStyle(node, styles) {
  for (const [name, value] of Object.entries(styles)) node.style.setProperty(name, value);
}

const SVG = byId("svg").namespaceURI; // the only address there is, and it is never visited

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** A colour of the style sheet, as it is in the present theme. */
export const themed = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
