// BERT's WordPiece as `zoo.data.BertTokenizer` has it, without padding.

const PUNCTUATION = "!-\\/:-@\\[-`\\{-~\\p{P}";
const CJK =
  "\\u{4E00}-\\u{9FFF}\\u{3400}-\\u{4DBF}\\u{20000}-\\u{2A6DF}\\u{2A700}-\\u{2CEAF}" +
  "\\u{F900}-\\u{FAFF}\\u{2F800}-\\u{2FA1F}";
const ALONE = PUNCTUATION + CJK; // each a word of its own
const BLANK = " \\t\\n\\f\\r\\p{Cc}\\p{Cf}";
const WORDS = new RegExp(`[${ALONE}]|[^${ALONE}${BLANK}]+`, "gu");
const MOST_BYTES = 100; // of a word that is spelled

/**
 * A function from a text to its ids: [CLS], pieces, [SEP].
 * @param {string[]} pieces the vocabulary, the id of each its place
 * @param {number} length of ids at most; longer texts are cut before [SEP]
 */
export function tokenizer(pieces, length) {
  const ids = new Map(pieces.map((piece, id) => [piece, id]));
  const [unknown, start, end] = ["[UNK]", "[CLS]", "[SEP]"].map((piece) => ids.get(piece));

  function spell(word) {
    if (new TextEncoder().encode(word).length > MOST_BYTES) return [unknown];
    const found = [];
    for (let from = 0, to; from < word.length; from = to) {
      const before = from ? "##" : "";
      to = word.length; // the longest piece that fits
      while (to > from && !ids.has(before + word.slice(from, to))) to -= 1;
      if (to === from) return [unknown];
      found.push(ids.get(before + word.slice(from, to)));
    }
    return found;
  }

  return (text) => {
    const bare = text.normalize("NFD").replace(/\p{Mn}/gu, "");
    const words = (bare.match(WORDS) ?? []).map(folded);
    return [start, ...words.flatMap(spell).slice(0, length - 2), end];
  };
}

// Unicode's NFKC_Casefold, as far as lower case and it differ.
function folded(word) {
  const lower = word.normalize("NFKC").toLowerCase().replaceAll("ß", "ss").replaceAll("ς", "σ");
  return lower.normalize("NFKC").replace(/\p{Default_Ignorable_Code_Point}/gu, "");
}
