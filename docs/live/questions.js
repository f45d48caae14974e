// What people type into a search box, as `zoo.retriever.preambles` reads it.

const BLANK = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/u;

/**
 * Functions of a text: `asked`, what the model is asked; `named`, how many words name something;
 * `prior`, the log odds that a photo of the caption bank holds its words, null of a sentence.
 * @param {object} facts of `tools/live_facts.py`
 * @param {Uint16Array} photos of each stem, one after the other
 */
export function questions(facts, photos) {
  const { starts, size, irregular, articles } = facts.questions;
  const functionWords = new Set(facts.function_words);
  const place = new Map(facts.questions.stems.map((stem, row) => [stem, row]));
  const preambles = facts.questions.preambles.map((pattern) => new RegExp(pattern, "y"));
  const endings = facts.questions.endings.map((pattern) => new RegExp(pattern, "g"));

  const naming = (text) => wordsOf(text).filter((word) => !functionWords.has(word));
  const stems = (text) => [...new Set(naming(text).map(stem))];

  function stem(word) {
    const ends = (...all) => all.some((ending) => word.endsWith(ending));
    const length = [...word].length;
    if (Object.hasOwn(irregular, word)) return irregular[word];
    if (length > 4 && ends("ies") && !ends("eies", "aies")) return `${word.slice(0, -3)}y`;
    if (length > 4 && ends("sses", "shes", "ches", "xes", "zes")) return word.slice(0, -2);
    if (length > 3 && ends("s") && !ends("us", "ss", "is")) return word.slice(0, -1);
    return word;
  }

  function bare(text) {
    const left = words(text).join(" ");
    const lower = left.toLowerCase();
    if (lower.length !== left.length) return text;
    let [start, end, changed, taken] = [0, left.length, true, false];
    while (changed) {
      changed = false;
      const within = lower.slice(0, end);
      for (const pattern of preambles) {
        pattern.lastIndex = start;
        if (pattern.test(within) && start < pattern.lastIndex && pattern.lastIndex < end) {
          [start, changed, taken] = [pattern.lastIndex, true, true];
        }
      }
      endings.forEach((pattern, i) => {
        pattern.lastIndex = start;
        const found = pattern.exec(lower.slice(0, end));
        if (found && found.index > start) {
          [end, changed, taken] = [found.index, true, taken || i > 0]; // a full stop is its own
        }
      });
    }
    const kept = left.slice(start, end);
    return !taken || !naming(kept).length ? text : kept;
  }

  function asked(question) {
    const text = bare(question);
    const [first, ...rest] = words(text);
    const isOne = rest.length === 1 && stems(text).length === 1;
    return isOne && articles.includes(first.toLowerCase()) ? rest.join(" ") : text;
  }

  function prior(text) {
    const found = stems(text);
    if (!found.length || found.length > facts.questions.most_words) return null;
    if (text.trimEnd().endsWith(".")) return null;
    const lists = found.map((one) => {
      const row = place.get(one);
      return row === undefined ? [] : [...photos.subarray(starts[row], starts[row + 1])];
    });
    const all = lists.reduce((kept, list) => {
      const there = new Set(list);
      return kept.filter((photo) => there.has(photo));
    });
    const share = (all.length + 0.25) / (size + 0.5);
    return Math.log(share / (1 - share));
  }

  return { asked, prior, named: (text) => naming(text).length };
}

function words(text) {
  return text.split(BLANK).filter(Boolean);
}

// As `zoo.confidence.words.words_of`.
function wordsOf(text) {
  const plain = text.toLowerCase().replace(/['’]/g, "");
  return plain.replace(/[^\p{L}\p{M}\p{N}]+/gu, " ").split(" ").filter(Boolean);
}
