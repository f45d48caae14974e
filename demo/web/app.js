// The page: its state is its address, so every view is a link.

import { h, ask, address, complain, say } from "./dom.js";
import { answerSection } from "./answer.js";
import { grid } from "./tiles.js";
import { view, close as closeViewer } from "./viewer.js";
import { mapPage } from "./map.js";
import { ownPage, ownKey } from "./own.js";
import { comparePage } from "./compare.js";
import { pictureAnswer } from "./picture.js";

const NAMES = ["q", "page", "view", "other", "photo", "line"];
const main = document.querySelector("#main");
const form = document.querySelector(".search");
const box = document.querySelector("#question");
let about = null, drawing = 0;

function read() {
  const query = new URLSearchParams(location.search);
  const state = Object.fromEntries(NAMES.map((name) => [name, query.get(name)]));
  state.line = state.line === null ? null : Number(state.line);
  state.photo = state.photo === null ? null : Number(state.photo);
  state.page ??= "photos";
  return state;
}

function link(state) {
  const values = { ...state, page: state.page === "photos" ? null : state.page };
  return address("./", Object.fromEntries(NAMES.map((name) => [name, values[name]])));
}

// Goes on to another state, as a link does.
function go(changes) {
  history.pushState(null, "", link({ ...read(), photo: null, ...changes }));
  draw();
}

// Keeps a state in the address without drawing.
function remember(changes) {
  history.replaceState(null, "", link({ ...read(), ...changes }));
}

function contextOf(state, own = null) {
  const context = { about, state, own, go, remember };
  context.view = (results, place) => view(results, place, context);
  return context;
}

async function draw() {
  const turn = (drawing += 1);
  const state = read();
  closeViewer();
  for (const one of document.querySelectorAll("nav a")) {
    if (one.dataset.page === state.page) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
    // The question goes along.
    one.href = link({ q: state.q, view: state.view, other: state.other, page: one.dataset.page });
  }
  if (document.activeElement !== box) box.value = state.q ?? "";
  box.placeholder = state.page === "own" ? "Describe your photo" : about.ask;
  document.title = state.q ? `${state.q} · Halo Zoo` : "Halo Zoo";
  document.body.dataset.page = state.page;
  main.setAttribute("aria-busy", "true");
  const show = (...children) => turn === drawing && main.replaceChildren(...children);
  try {
    const pages = { map: mapPage, own: ownPage, compare: comparePage };
    const own = state.page === "own" ? ownKey() : null;
    const context = contextOf(state, own);
    await (pages[state.page] ?? photosPage)(state, context, show);
  } catch (error) {
    show(h("section", { class: "answer" }, h("p", { class: "error", role: "alert" }, error.message)));
    say(error.message);
  }
  if (turn === drawing) main.removeAttribute("aria-busy");
}

// The wall of photos, or an answer.
async function photosPage(state, context, show) {
  const missing = about.missing.photos ? h("p", { class: "note" }, about.missing.photos) : null;
  if (!state.q) {
    if (!about.photos) {
      show(h("section", { class: "home" }, h("p", { class: "lead" }, about.missing.images)));
      return;
    }
    const wall = h("section", { class: "home" }, missing, examples(), h("div", { class: "wall" }));
    show(wall);
    await fill(wall.querySelector(".wall"), context);
    openLinked(state, context);
    return;
  }
  const answer = await ask("ask", { q: state.q, view: state.view });
  context.results = answer.results;
  show(missing ?? "", answerSection(answer, context));
  openLinked(state, context);
}

// Photos of the gallery, a further screen of them when the end comes into sight.
async function fill(wall, context) {
  const all = [];
  const list = h("ol", { class: "grid" });
  const end = h("div", { class: "end" });
  wall.append(list, end);
  context.results = all;
  const more = async () => {
    const { results, total } = await ask("photos", { offset: all.length, view: context.state.view });
    const start = all.length;
    all.push(...results);
    list.append(...grid(results, (place) => context.view(all, place), { start }).children);
    if (all.length >= total || !results.length) watcher.disconnect();
  };
  const watcher = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) more().catch((error) => complain(error.message));
  }, { rootMargin: "600px" });
  await more();
  if (wall.isConnected) watcher.observe(end);
}

function examples() {
  return h("div", { class: "chips", role: "group", "aria-label": "Examples" },
    ...about.examples.map((one) => h("button", { type: "button", class: "chip", onclick: () => go({ q: one.caption }) },
      one.caption)));
}

function openLinked(state, context) {
  if (state.photo === null || !context.results) return;
  const place = context.results.findIndex((one) => one.item === state.photo);
  if (place >= 0) context.view(context.results, place);
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const words = box.value.trim();
  box.blur();
  if (words) go({ q: words, line: null });
});
document.querySelector("#picture").addEventListener("change", async (event) => {
  const [file] = event.target.files;
  event.target.value = "";
  if (!file) return;
  const state = { ...read(), page: "photos", q: null, photo: null };
  history.pushState(null, "", link(state));
  const turn = (drawing += 1);
  try {
    const section = await pictureAnswer(file, contextOf(state));
    if (turn === drawing) main.replaceChildren(section);
  } catch (error) {
    main.replaceChildren(h("section", { class: "answer" }, h("p", { class: "error", role: "alert" }, error.message)));
  }
});
document.addEventListener("click", (event) => {
  const anchor = event.target.closest("a[data-page], a.brand");
  if (!anchor || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  history.pushState(null, "", anchor.getAttribute("href"));
  draw();
  window.scrollTo(0, 0);
});
window.addEventListener("popstate", draw);
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.closest("input, textarea, dialog")) return;
  event.preventDefault();
  box.focus();
});

about = await ask("about");
document.querySelector('[data-page="compare"]').hidden = about.views.length < 2 || !about.photos;
document.querySelector('[data-page="own"]').hidden = !about.reads_words;
document.querySelector(".by-picture").hidden = !about.reads_words;
document.querySelector('[data-page="map"]').hidden = Boolean(about.missing.map);
document.querySelector("#captions").append(...about.stored_captions.map((text) => h("option", { value: text })));
await draw();
