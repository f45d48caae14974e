// Elements without a framework, and what the server answers.

const SVG = new Set(["svg", "circle", "path", "line", "rect", "text", "g", "title"]);

// An element: h("a", { href, class, onclick }, ...children). Text is never read as HTML.
export function h(tag, properties = {}, ...children) {
  const element = SVG.has(tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.entries(value).forEach(([k, v]) => element.style.setProperty(k, v));
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// JSON of the server; throws an Error with its sentence.
export async function ask(path, values = {}, options = {}) {
  const response = await fetch(address(path, values), options);
  const found = await response.json().catch(() => ({ error: "The demo does not answer." }));
  if (!response.ok) throw new Error(found.error ?? "The demo does not answer.");
  return found;
}

export function address(path, values = {}) {
  const kept = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return kept.length ? `${path}?${new URLSearchParams(kept)}` : path;
}

export function percent(share) {
  if (share === null || share === undefined) return "";
  const number = 100 * share;
  return number < 1 ? "<1\u00a0%" : `${Math.round(number)}\u00a0%`;
}

export function plural(count, noun) {
  return `${count.toLocaleString("en")} ${count === 1 ? noun : `${noun}s`}`;
}

export function say(sentence) {
  document.querySelector("#status").textContent = sentence;
}

export function complain(sentence) {
  const toast = document.querySelector("#toast");
  toast.textContent = sentence;
  toast.hidden = false;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => (toast.hidden = true), 6000);
}
