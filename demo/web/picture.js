// A picture as the question: captions that describe it, or photos like it.

import { h, ask } from "./dom.js";
import { verdict } from "./answer.js";
import { grid } from "./tiles.js";
import { captionList } from "./viewer.js";

export async function pictureAnswer(file, context) {
  if (file.size > context.about.limits.bytes) {
    throw new Error(`At most ${context.about.limits.bytes / 2 ** 20} MB per photo are taken.`);
  }
  const found = await ask("picture", { view: context.state.view }, { method: "POST", body: file });
  const picture = h("img", { class: "asked", src: URL.createObjectURL(file), alt: "Your picture" });
  if (found.verdict) {
    return h("section", { class: "answer by-picture-answer" }, picture,
      h("div", {}, verdict(found), captionList(found)));
  }
  return h("section", { class: "answer" }, h("div", { class: "asked-row" }, picture, h("h1", {}, "Photos like this one")),
    grid(found.results.slice(0, 60), (place) => context.view(found.results, place)));
}
