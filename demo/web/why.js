// Why: this question's best score among those of test questions, and its words to leave out.

import { h, ask, percent, plural } from "./dom.js";

const WIDTH = 640, HEIGHT = 150, MIDDLE = 84;

// A fold that asks for its contents when it is opened first.
export function why(answer, context) {
  const body = h("div", { class: "why-body", "aria-busy": "true" });
  const fold = h("details", { class: "why" }, h("summary", {}, "Why?"), body);
  fold.addEventListener("toggle", async () => {
    if (!fold.open || body.childElementCount) return;
    const values = { q: answer.question, view: context.state.view, among_own: context.own };
    const failed = (error) => body.append(h("p", { class: "note" }, error.message));
    const drawn = [
      ask("why", values).then((found) => body.append(picture(found), numbers(found, answer))).catch(failed),
      ask("words", values).then((found) => body.prepend(chips(found, answer, context))).catch(failed),
    ];
    await Promise.all(drawn);
    body.removeAttribute("aria-busy");
  });
  return fold;
}

// The words of the question: what the probability becomes without each; pressing leaves it out.
function chips(found, answer, context) {
  if (found.words.length < 2 || !found.without.some(Boolean)) return h("div");
  const now = answer.probability;
  const chip = (word, place) => {
    const without = found.without[place];
    const then = without?.probability ?? null;
    const change = then === null || now === null ? "" : percent(then);
    const rest = found.words.filter((_, i) => i !== place).join(" ");
    const sentence = change ? `without it ${change}` : "leave it out";
    return h("button", { type: "button", class: "chip", "aria-label": `${word}: ${sentence}`, onclick: () => context.go({ q: rest }) },
      h("s", {}, word), change ? h("small", {}, change) : null);
  };
  return h("div", {},
    h("p", {}, now === null ? "Leave out a word:" : `Now ${percent(now)}. Without a word the first photo fits with:`),
    h("div", { class: "chips" }, ...found.words.map(chip)));
}

// Counts of right test questions above the axis, of wrong ones below, by their best score.
function picture(found) {
  if (!found.probes) return h("p", { class: "note" }, `There is no probability: ${found.why_not}.`);
  const { right, wrong, low, high } = found.probes;
  const most = Math.max(...right, ...wrong, 1), step = WIDTH / right.length;
  const bar = (count, i, up) => {
    const height = (count / most) * (up ? MIDDLE - 22 : HEIGHT - MIDDLE - 6);
    return h("rect", {
      class: up ? "right" : "wrong", x: i * step + 1, width: step - 2, rx: 1.5,
      y: up ? MIDDLE - height - 1 : MIDDLE + 1, height,
    });
  };
  const x = ((found.score - low) / (high - low)) * WIDTH;
  const anchor = x < WIDTH * 0.2 ? "start" : x > WIDTH * 0.8 ? "end" : "middle";
  const said = `${plural(found.probes.num_right, "test question")} found a right photo first, ${found.probes.num_wrong.toLocaleString("en")} did not. ` +
    `This question's best score is higher than ${percent(found.probes.lower)} of the right ones'.`;
  return h("figure", { class: "evidence" },
    h("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": said },
      ...right.map((count, i) => bar(count, i, true)), ...wrong.map((count, i) => bar(count, i, false)),
      h("line", { class: "axis", x1: 0, x2: WIDTH, y1: MIDDLE, y2: MIDDLE }),
      h("line", { class: "here", x1: x, x2: x, y1: 16, y2: HEIGHT }),
      h("text", { class: "here", x, y: 11, "text-anchor": anchor }, "this question")),
    h("figcaption", {},
      h("span", { class: "key right" }, `${found.probes.num_right.toLocaleString("en")} right`),
      h("span", { class: "key wrong" }, `${found.probes.num_wrong.toLocaleString("en")} wrong`),
      h("span", {}, "better match →"),
      h("p", {}, "Test questions with known answers, each asked among these photos.")));
}

function numbers(found, answer) {
  const rows = [
    ["Model", found.model], ["Ranked by", found.similarity], ["Best score", found.score.toPrecision(3)],
    ["Photos searched", found.items.toLocaleString("en")],
    ["Photos expected to fit", answer.number === null ? null : answer.number.toFixed(1)],
    ["Results that hold the wanted photo, 9 times in 10", answer.first_k],
    ["Judged by", found.probes?.judged_by], ["Measure of uncertainty", found.measure?.replaceAll("_", " ")],
  ].filter(([, value]) => value !== null && value !== undefined);
  return h("details", { class: "numbers" }, h("summary", {}, "Numbers of the model"),
    h("dl", {}, ...rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, String(value))])));
}
