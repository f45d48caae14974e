// A photo large: arrows go to the next one, Esc closes.

import { h, ask, address, complain, percent } from "./dom.js";
import { halo, inWords } from "./halo.js";
import { source, grid } from "./tiles.js";

const dialog = document.querySelector("#viewer");
let results = [], place = 0, context = null, opener = null;

// Opens a photo of a list; `using`: about, own, state, remember(changes).
export function view(list, start, using) {
  if (!dialog.open) opener = document.activeElement;
  [results, place, context] = [list, start, using];
  draw();
  if (!dialog.open) dialog.showModal();
  dialog.querySelector(".close").focus();
}

export function isOpen() {
  return dialog.open;
}

export function close() {
  if (dialog.open) dialog.close();
}

function step(by) {
  const next = place + by;
  if (next < 0 || next >= results.length) return;
  place = next;
  draw();
}

function draw() {
  const photo = results[place];
  context.remember({ photo: photo.item });
  const arrow = (name, by, path) => h("button", {
    type: "button", class: `arrow ${name.toLowerCase()}`, "aria-label": `${name} photo`, onclick: () => step(by),
    disabled: place + by < 0 || place + by >= results.length,
  }, h("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, h("path", { d: path })));
  const said = inWords(photo);
  const details = [
    h("h2", {}, photo.name),
    photo.description && photo.description !== photo.name ? h("p", {}, photo.description) : null,
    photo.fits === null || photo.fits === undefined ? null
      : h("p", { class: "fit" }, halo(photo), h("span", {}, said)),
    photo.uncertainty === null || photo.uncertainty === undefined ? null
      : h("p", { class: "quiet" }, `The model finds ${percent(photo.uncertainty)} of the ${context.about.noun}s here clearer.`),
    photo.credit ? h("p", { class: "quiet" }, h("a", { href: photo.credit.page, target: "_blank", rel: "noopener noreferrer" }, `Photo ${photo.credit.flickr_id} on Flickr`), ", ",
      h("a", { href: photo.credit.licence_url, target: "_blank", rel: "noopener noreferrer" }, photo.credit.licence),
      ". Words: COCO, CC BY 4.0.") : null,
  ];
  const captions = h("div", { class: "captions" });
  const neighbours = h("div", { class: "neighbours" });
  const attention = h("div", { class: "attention" });
  dialog.replaceChildren(
    h("button", { type: "button", class: "close", "aria-label": "Close", onclick: close },
      h("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, h("path", { d: "M5 5l14 14M19 5 5 19" }))),
    h("div", { class: "stage" }, arrow("Previous", -1, "M15 5l-7 7 7 7"),
      h("img", { class: "large", src: source("large", photo, context.own), alt: photo.description ?? photo.name, referrerpolicy: "no-referrer" }),
      arrow("Next", 1, "M9 5l7 7-7 7")),
    h("aside", { tabindex: 0, "aria-label": "About this photo" }, ...details.filter(Boolean), attention, captions, neighbours));
  const model = context.state.view || context.about.views[0];
  if (context.about.attending.includes(model)) attentionOf(photo, attention);
  if (!context.about.missing.map) neighboursOf(photo, neighbours);
  if (context.about.captions && !context.own) captionsOf(photo, captions);
}

async function neighboursOf(photo, into) {
  try {
    const values = { item: photo.item, view: context.state.view, among_own: context.own };
    const { results: near } = await ask("similar", values);
    if (results[place] !== photo || !near.length) return;
    into.replaceChildren(h("h3", {}, "Photos like this one"),
      grid(near.slice(0, 9), (at) => view(near, at, context), { own: context.own, small: true }));
  } catch (error) {
    complain(error.message);
  }
}

// What each element of a set looks at; one that is pressed stands in place of the photo.
async function attentionOf(photo, into) {
  const values = { view: context.state.view, among_own: context.own };
  try {
    const { most } = await ask("attention", { item: photo.item, ...values });
    if (results[place] !== photo) return;
    const large = dialog.querySelector(".large"), whole = large.src;
    const parts = most.map((times, element) => {
      const src = address(`photo/attention/${photo.item}`, { element, ...values });
      const part = h("button", { type: "button", "aria-pressed": "false" },
        h("img", { src, alt: `What element ${element + 1} looks at` }), h("small", {}, `× ${times.toFixed(1)}`));
      part.addEventListener("click", () => {
        const isOn = part.getAttribute("aria-pressed") === "true";
        for (const one of parts) one.setAttribute("aria-pressed", String(one === part && !isOn));
        large.src = isOn ? whole : src;
      });
      return part;
    });
    into.replaceChildren(h("h3", {}, "What each element looks at"), h("div", { class: "parts" }, ...parts),
      h("p", { class: "quiet" }, "Pale: not looked at. × 2: the strongest part has twice an even share."));
  } catch (error) {
    complain(error.message);
  }
}

async function captionsOf(photo, into) {
  try {
    const found = await ask("captions", { item: photo.item, view: context.state.view });
    if (results[place] !== photo) return;
    into.replaceChildren(h("h3", {}, "In words"), captionList(found));
  } catch (error) {
    complain(error.message);
  }
}

// Captions with their rings.
export function captionList(found) {
  return h("ol", { class: "caption-list" },
    ...found.results.map((one) => h("li", {}, halo(one), h("span", {}, one.name))));
}

dialog.addEventListener("keydown", (event) => {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!by) return;
  event.preventDefault();
  step(by);
  dialog.querySelector(".close").focus();
});
dialog.addEventListener("click", (event) => {
  if (event.target === dialog) close();
});
dialog.addEventListener("close", () => {
  context?.remember({ photo: null });
  if (opener?.isConnected) opener.focus();
});
