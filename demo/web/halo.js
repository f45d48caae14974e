// The halo: a ring that fills with the probability; the soft band is where it may really lie.

import { h, percent } from "./dom.js";

const RADIUS = 18;
const LENGTH = 2 * Math.PI * RADIUS;

// An arc of the ring from one share to another, clockwise from the top.
function arc(from, to, name) {
  const length = Math.max(0, to - from) * LENGTH;
  return h("circle", {
    class: name, cx: 24, cy: 24, r: RADIUS, "stroke-dasharray": `${length} ${LENGTH}`,
    "stroke-dashoffset": -from * LENGTH, transform: "rotate(-90 24 24)",
  });
}

// The ring of a result with `fits` and `interval`; null where nothing is known.
export function halo(result) {
  if (result.fits === null || result.fits === undefined) return null;
  const parts = [h("circle", { class: "disc", cx: 24, cy: 24, r: 22 })];
  if (result.interval) parts.push(arc(...result.interval, "band"));
  else parts.push(h("circle", { class: "unknown", cx: 24, cy: 24, r: RADIUS }));
  parts.push(arc(0, result.fits, "share"));
  const number = 100 * result.fits;
  parts.push(h("text", { x: 24, y: 24 }, number < 1 ? "<1" : String(Math.round(number))));
  return h("svg", { class: "halo", viewBox: "0 0 48 48", "aria-hidden": "true" }, ...parts);
}

// What the ring says, for people who do not see it.
export function inWords(result) {
  if (result.fits === null || result.fits === undefined) return "";
  const width = result.interval ? `, between ${percent(result.interval[0])} and ${percent(result.interval[1])}` : "";
  return `${percent(result.fits)} likely to fit${width}`;
}

export function legend() {
  const sample = (fits, interval) => halo({ fits, interval });
  return h("details", { class: "legend" },
    h("summary", {}, "How to read the rings"),
    h("dl", {},
      h("dt", {}, sample(0.8, [0.7, 0.88])), h("dd", {}, "The ring fills with the probability that the photo fits."),
      h("dt", {}, sample(0.6, [0.2, 0.9])), h("dd", {}, "The soft band shows where it may really lie. Few photos make it wide."),
      h("dt", {}, sample(0.4, null)), h("dd", {}, "Dashed: for short questions and unknown words, how far off it may be is not known."),
    ));
}
