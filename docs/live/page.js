// The page: a box, what is fetched, and the answer as the demo shows it.

import { manifest, open } from "./engine.js";

const SHOWN = 8;
const TITLES = {
  likely: "Likely",
  unsure: "Unsure",
  "nothing matches": "Nothing here looks like that",
  "not understood": "Not understood",
};
const EXAMPLES = [
  "riding horses on the beach",
  "a penguin",
  "a pizza on a table",
  "snow",
  "a wibble of frobnicated zorp",
];
const place = document.getElementById("halo-live");

function made(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children.filter((child) => child !== null));
  return element;
}

async function start() {
  if (typeof WebAssembly === "undefined" || typeof DecompressionStream === "undefined") {
    return instead("This browser has no WebAssembly, which the model needs. An answer:");
  }
  const built = await manifest();
  if (built === null) {
    return instead("This copy of the site has no model in it; “make live” builds one that has. An answer:");
  }
  const box = made("input", { type: "search", maxLength: 400, required: true });
  box.placeholder = `Describe one of ${built.photos.length} photos`;
  box.setAttribute("aria-label", box.placeholder);
  const button = made("button", { className: "md-button md-button--primary" }, "Search");
  const form = made("form", { className: "halo-form" }, box, button);
  const examples = EXAMPLES.map((text) =>
    made("button", { type: "button", className: "halo-example", onclick: () => ask(text) }, text),
  );
  const status = made("p", { className: "halo-status", role: "status" });
  status.textContent = `The first question fetches ${megabytes(built.bytes)}, once.`;
  const bar = made("progress", { max: built.bytes, value: 0, hidden: true });
  const answer = made("section", { className: "halo-answer" });
  answer.setAttribute("aria-live", "polite");
  let engine = null;

  async function ask(text) {
    box.value = text;
    history.replaceState(null, "", `?ask=${encodeURIComponent(text)}`);
    try {
      engine ??= load();
      const model = await engine;
      const before = performance.now();
      const said = await model.ask(text);
      const took = Math.round(performance.now() - before);
      status.textContent = `Answered here in ${took} ms; nothing left this browser.`;
      answer.replaceChildren(...shown(said, model));
      answer.dataset.question = text;
    } catch (error) {
      engine = null; // to be tried again
      bar.hidden = true;
      status.textContent = `The model could not be loaded: ${error.message}`;
    }
  }

  async function load() {
    bar.hidden = false;
    const model = await open(built, (come) => {
      bar.value = Math.min(come, built.bytes);
      status.textContent = `Fetched ${megabytes(bar.value)} of ${megabytes(built.bytes)} …`;
    });
    bar.hidden = true;
    return model;
  }

  form.onsubmit = (event) => {
    event.preventDefault();
    if (box.value.trim()) ask(box.value.trim());
  };
  place.replaceChildren(
    form,
    made("div", { className: "halo-examples" }, ...examples),
    status,
    bar,
    answer,
  );
  // Not ?q=, which opens the search of the site itself.
  const asked = new URLSearchParams(location.search).get("ask");
  if (asked) ask(asked.slice(0, 400));
}

function shown(said, model) {
  const isDeclined = said.verdict === "nothing matches" || said.verdict === "not understood";
  const kind = isDeclined ? "declined" : said.verdict;
  const verdict = made(
    "div",
    { className: `halo-verdict halo-is-${kind}` },
    made("p", { className: "halo-level" }, TITLES[said.verdict]),
    made("p", { className: "halo-sentence" }, said.reason.replaceAll(" %", "\u00a0%")),
  );
  const note = said.asked === null ? [] : [made("p", {}, `Asked: “${said.asked}”`)];
  const pictures = said.found.slice(0, SHOWN).map(({ photo, fit }, rank) => {
    const isPast = !isDeclined && rank >= said.fitting;
    return picture(photo, isDeclined ? null : fit, isPast, rank, model);
  });
  const className = isDeclined ? "halo-results halo-refused" : "halo-results";
  return [verdict, ...note, made("ol", { className }, ...pictures)];
}

// A photo with its bar and number; pale from the first on that does not fit.
function picture(photo, fit, isPast, rank, model) {
  const image = made("img", { src: model.photo(photo.file), alt: `Result ${rank + 1}` });
  Object.assign(image, { width: 320, height: 320 });
  const credit = made("a", { href: photo.page, rel: "noopener noreferrer" }, photo.licence);
  credit.title = "The photo's page on Flickr";
  const said = fit === null ? null : made("b", {}, `fits ${(100 * fit).toFixed(0)}\u00a0%`);
  const bar = fit === null ? null : made("i", { className: "halo-bar" }, made("b"));
  if (bar) bar.firstChild.style.width = `${100 * fit}%`;
  const className = isPast ? "halo-past" : "";
  return made("li", { className }, image, bar, made("p", {}, said, credit));
}

function instead(sentence) {
  place.querySelector("p").textContent = sentence;
}

function megabytes(bytes) {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

start();
