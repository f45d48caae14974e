// Photos in rows of equal height, as wide as they are.

import { h, address } from "./dom.js";
import { halo, inWords } from "./halo.js";

export function source(kind, result, own) {
  return result.address ?? address(`photo/${kind}/${result.item}`, { among_own: own });
}

// A photo that opens large; `open(place)` is called with its place among the results.
export function tile(result, place, open, own) {
  const words = [result.description ?? result.name, inWords(result)].filter(Boolean).join(", ");
  const mark = result.right === null || result.right === undefined ? null
    : h("span", { class: `mark ${result.right ? "right" : "wrong"}` }, result.right ? "✓ right" : "✗ wrong");
  return h("li", { class: "tile", style: { "--ratio": Math.min(2.4, Math.max(0.55, result.ratio ?? 1)) }, "data-item": result.item },
    h("button", { type: "button", "aria-label": `Open: ${words}`, onclick: () => open(place) },
      h("img", { src: source("thumbnail", result, own), alt: "", loading: "lazy", decoding: "async", referrerpolicy: "no-referrer" }),
      halo(result), mark));
}

export function grid(results, open, { own = null, small = false, start = 0 } = {}) {
  return h("ol", { class: small ? "grid small" : "grid" },
    ...results.map((result, i) => tile(result, start + i, open, own)));
}
