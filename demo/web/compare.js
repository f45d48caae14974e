// The same question by two models or similarities, side by side.

import { h, ask } from "./dom.js";
import { verdict } from "./answer.js";
import { grid } from "./tiles.js";
import { legend } from "./halo.js";
import { share } from "./share.js";

const SHOWN = 12;

export async function comparePage(state, context, show) {
  const views = context.about.views;
  const chosen = [state.view || views[0], state.other || views[1]];
  if (!state.q) {
    show(h("section", { class: "home" }, selects(views, chosen, context),
      h("p", { class: "lead" }, "Ask once, see two answers."),
      h("div", { class: "chips" }, ...context.about.examples.map((one) =>
        h("button", { type: "button", class: "chip", onclick: () => context.go({ q: one.caption }) }, one.caption)))));
    return;
  }
  const answers = await Promise.all(chosen.map((name) => ask("ask", { q: state.q, view: name })));
  const shown = answers.map((answer) => answer.results.slice(0, SHOWN).map((one) => one.item));
  const columns = answers.map((answer, side) => {
    const results = answer.results.slice(0, SHOWN);
    const list = grid(results, (place) => context.view(results, place));
    results.forEach((one, place) => {
      const rank = shown[1 - side].indexOf(one.item);
      if (rank === place) return;
      list.children[place].append(h("span", { class: rank < 0 ? "rank alone" : "rank" },
        rank < 0 ? "only here" : `no. ${rank + 1} there`));
    });
    return h("article", {}, h("h2", { class: "visually-hidden" }, chosen[side]), verdict(answer), list);
  });
  const both = shown[0].filter((item) => shown[1].includes(item)).length;
  const section = h("section", { class: "compare" }, selects(views, chosen, context),
    h("p", { class: "note" }, `${both} of the first ${Math.min(...shown.map((one) => one.length))} photos are in both.`),
    h("div", { class: "columns" }, ...columns), answers.some((one) => one.expected) ? legend() : "", share());
  pointOut(section);
  show(section);
}

function selects(views, chosen, context) {
  const choice = (name, value, label) => h("label", {}, h("span", { class: "visually-hidden" }, label),
    h("select", { onchange: (event) => context.go({ [name]: event.target.value }) },
      ...views.map((one) => h("option", { value: one, selected: one === value }, one))));
  return h("div", { class: "selects" }, choice("view", chosen[0], "Left"), choice("other", chosen[1], "Right"));
}

// A photo that is pointed at is outlined on the other side too.
function pointOut(section) {
  const mark = (event, on) => {
    const item = event.target.closest?.(".tile")?.dataset.item;
    if (!item) return;
    for (const one of section.querySelectorAll(`.tile[data-item="${CSS.escape(item)}"]`)) one.classList.toggle("pointed", on);
  };
  for (const [kind, on] of [["mouseover", true], ["mouseout", false], ["focusin", true], ["focusout", false]]) {
    section.addEventListener(kind, (event) => mark(event, on));
  }
}
