// An answer: what is said, the photos in its order, and the line where fitting ends.

import { h, plural, percent, say } from "./dom.js";
import { grid, tile } from "./tiles.js";
import { legend } from "./halo.js";
import { why } from "./why.js";
import { share } from "./share.js";

const UNLIKELY = 0.2; // below this the photos are folded
const LARGE = 4; // as few likely photos as this are shown larger
const WORDS = {
  likely: "Likely", unsure: "Unsure", "nothing matches": "Nothing here fits", "not understood": "Not understood",
};
const REFUSED = ["nothing matches", "not understood"];

// What is said of an answer: the verdict and its reason.
export function verdict(answer, ...more) {
  return h("div", { class: `verdict ${answer.verdict.replace(" ", "-")}` },
    h("h1", {}, WORDS[answer.verdict] ?? answer.verdict),
    h("p", {}, answer.reason), ...more);
}

// The section of an answer. `context`: about, own, state, go(changes), view(results, place).
export function answerSection(answer, context) {
  const { results } = answer;
  const open = (place) => context.view(results, place);
  const isRefused = REFUSED.includes(answer.verdict);
  const section = h("section", { class: isRefused ? "answer refused" : "answer" },
    verdict(answer, context.own ? null : share()));
  const notes = [];
  if (answer.asked && !answer.question.includes(answer.asked)) notes.push(`Searched for “${answer.asked}”.`);
  if (answer.unknown_words?.length && answer.verdict !== "not understood") {
    notes.push(`The model does not know ${answer.unknown_words.slice(0, 5).map((w) => `“${w}”`).join(", ")}.`);
  }
  if (notes.length) section.append(h("p", { class: "note" }, notes.join(" ")));
  if (isRefused || !answer.expected) {
    if (isRefused) section.append(h("h2", {}, "Nearest photos"));
    section.append(grid(results.slice(0, isRefused ? 12 : 60), open, { own: context.own, small: isRefused }));
  } else {
    section.append(...withLine(answer, context, open));
  }
  section.append(why(answer, context), answer.expected ? legend() : "");
  say(`${WORDS[answer.verdict] ?? ""}. ${answer.reason}`);
  return section;
}

// The grid with the line that the slider moves; nothing is asked when it moves.
function withLine(answer, context, open) {
  const { results, expected } = answer;
  const noun = context.about.noun;
  const tiles = results.map((result, place) => tile(result, place, open, context.own));
  const likely = h("ol", { class: "grid", "aria-label": "Likely to fit" });
  const maybe = h("ol", { class: "grid", "aria-label": "May fit" });
  const unlikely = h("ol", { class: "grid small", "aria-label": "Unlikely" });
  const output = h("output", { for: "line" });
  const line = h("h2", { class: "line" }, h("span", {}));
  const summary = h("summary", {});
  const folded = h("details", { class: "unlikely" }, summary, unlikely);
  const slider = h("input", {
    id: "line", type: "range", min: 5, max: 95, step: 1,
    value: Math.round(100 * (context.state.line ?? 0.5)), "aria-label": "Least probability",
  });
  const move = () => {
    const least = slider.value / 100;
    const above = results.filter((result) => result.fits >= least).length;
    const below = Math.max(above, results.filter((result) => result.fits >= UNLIKELY).length);
    likely.replaceChildren(...tiles.slice(0, above));
    maybe.replaceChildren(...tiles.slice(above, below));
    unlikely.replaceChildren(...tiles.slice(below));
    likely.classList.toggle("large", above <= LARGE);
    likely.hidden = above === 0;
    maybe.hidden = below === above;
    line.firstChild.textContent = below > above ? `May fit · ${below - above}` : "Nothing more may fit";
    summary.textContent = `Unlikely · ${results.length - below}`;
    folded.hidden = below === results.length;
    if (below === 0) folded.open = true; // there is nothing else to see
    output.textContent = above
      ? `${plural(above, noun)} at ${percent(least)} or more · expect ${Math.round(expected[above - 1])} to fit`
      : `No ${noun} at ${percent(least)} or more`;
    slider.setAttribute("aria-valuetext", output.textContent);
  };
  slider.addEventListener("input", move);
  slider.addEventListener("change", () => context.remember({ line: slider.value / 100 }));
  move();
  return [
    h("div", { class: "bar" }, h("span", { class: "few", "aria-hidden": "true" }, "more"), slider,
      h("span", { class: "few", "aria-hidden": "true" }, "surer"), output),
    likely, line, maybe, folded,
  ];
}
