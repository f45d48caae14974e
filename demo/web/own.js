// A visitor's photos: dropped, sent one by one, and searched as the others are.

import { h, ask, address, complain, plural, say } from "./dom.js";
import { answerSection } from "./answer.js";
import { grid, tile } from "./tiles.js";

const AT_ONCE = 3; // photos under way
const KEY = "halo-own";

// The key of this tab's photos, or null.
export function ownKey() {
  return sessionStorage.getItem(KEY);
}

export async function ownPage(state, context, show) {
  if (!context.about.reads_words) throw new Error("This model reads stored vectors and no photos.");
  let photos = [];
  if (context.own) {
    try {
      photos = await all(context.own);
    } catch {
      sessionStorage.removeItem(KEY); // they are deleted by now
      context.own = null;
    }
  }
  context.results = photos;
  if (!context.own || !photos.length) {
    show(dropArea(context, photos));
  } else if (state.q) {
    const answer = await ask("ask", { q: state.q, among_own: context.own });
    show(answerSection(answer, context));
  } else {
    show(dropArea(context, photos));
  }
}

async function all(own) {
  const photos = [];
  let total = 1;
  while (photos.length < total) {
    const found = await ask("photos", { among_own: own, offset: photos.length });
    total = found.total;
    if (!found.results.length) break;
    photos.push(...found.results);
  }
  return photos;
}

function dropArea(context, photos) {
  const { limits } = context.about;
  const input = h("input", { type: "file", accept: "image/*", multiple: true, id: "own-files", class: "visually-hidden" });
  const bar = h("progress", { max: 1, value: 0, hidden: true, "aria-label": "Photos that are read" });
  const note = h("p", { class: "note", "aria-live": "polite" });
  const open = (place) => context.view(context.results, place);
  const wall = grid(photos, open, { own: context.own });
  const forget = h("button", { type: "button", class: "share", hidden: !photos.length, onclick: async () => {
    await ask("forget", { among_own: context.own }, { method: "POST" });
    sessionStorage.removeItem(KEY);
    context.go({ q: null });
  } }, "Delete them now");
  const area = h("label", { class: "drop", for: "own-files" },
    h("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, h("path", { d: "M12 16V4m0 0L7 9m5-5 5 5M4 16v3a1 1 0 0 0 1 1h14a1 1 0 0 0 1-1v-3" })),
    h("strong", {}, "Add your photos"), h("span", {}, "They are deleted after an hour."));
  const section = h("section", { class: "own" }, input, area, bar, note, wall, forget);
  const take = async (files) => {
    const pictures = [...files].filter((file) => !file.type || file.type.startsWith("image/"));
    await send(pictures, context, { bar, note, wall, open, limits });
    forget.hidden = !context.results.length;
  };
  input.addEventListener("change", () => take(input.files));
  for (const kind of ["dragover", "dragleave", "drop"]) {
    area.addEventListener(kind, (event) => {
      event.preventDefault();
      area.classList.toggle("over", kind === "dragover");
      if (kind === "drop") take(event.dataTransfer.files);
    });
  }
  return section;
}

// Sends files, a few at a time; each appears at once, and its ring ends when it is read.
async function send(files, context, { bar, note, wall, open, limits }) {
  const queue = files.slice(0, Math.max(0, limits.photos - context.results.length));
  let done = 0, bad = 0, unlike = 0, reason = "";
  if (queue.length < files.length) reason = `At most ${limits.photos} photos are taken.`;
  bar.hidden = false;
  bar.value = 0;
  const one = async (file) => {
    const preview = h("li", { class: "tile waiting" }, h("img", { src: URL.createObjectURL(file), alt: "" }));
    wall.append(preview);
    try {
      if (file.size > limits.bytes) throw new Error(`${file.name} is larger than ${limits.bytes / 2 ** 20} MB.`);
      const path = address("own", { name: file.name, among_own: context.own });
      const found = await ask(path, {}, { method: "POST", body: file });
      context.own = found.key;
      sessionStorage.setItem(KEY, found.key);
      unlike += found.unlike ? 1 : 0;
      const photo = { item: found.item, name: found.name, ratio: ratioOf(preview), fits: null };
      context.results.push(photo);
      preview.replaceWith(tile(photo, context.results.length - 1, open, context.own));
    } catch (error) {
      bad += 1;
      reason = error.message;
      preview.remove();
    }
    done += 1;
    bar.value = done / queue.length;
  };
  const [first, ...rest] = queue;
  if (first) await one(first); // which starts the album
  const work = async () => {
    while (rest.length) await one(rest.shift());
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  bar.hidden = true;
  const said = [plural(context.results.length, "photo"), bad ? `${plural(bad, "file")} not read` : "",
    unlike ? `${unlike} unlike what the model has learnt from, so answers about them are guesses` : ""];
  note.textContent = `${said.filter(Boolean).join(" · ")}. ${reason}`.trim();
  say(note.textContent);
  if (bad && !context.results.length) complain(reason);
}

function ratioOf(preview) {
  const image = preview.querySelector("img");
  return image.naturalWidth ? image.naturalWidth / image.naturalHeight : 1;
}
