// What `zoo.Retriever` says to a question whose embedding is there: the same numbers and words.

const AGREEING = [5, 10, 20]; // ranks, of `zoo.confidence.agreement`
const FOLLOWING = [2, 5, 10, 20]; // ranks, of `QueryScores.following`
const WORDS = {
  strange: "The question lies far from all that was learned.",
  empty: "It has no words that name something.",
  unsaid:
    "How often such questions find the right one first cannot be said: there are too few kinds " +
    "to learn from.",
};

/**
 * A function from an embedding and its text to an answer: verdict, probability, interval, reason,
 * firstK (null where nothing can be promised) and `found`, every item best first.
 * @param {object} facts of `tools/live_facts.py`
 * @param {Float32Array} gallery (items, dim + 1): means, and the root of the total variance
 * @param {Float32Array} seen (texts, dim): what training has seen, of length one
 */
export function judge(facts, gallery, seen) {
  const wide = facts.dim + 1;
  const count = gallery.length / wide;
  const rows = Array.from({ length: count }, (_, i) => gallery.subarray(i * wide, (i + 1) * wide));
  const centre = Float64Array.from({ length: wide }, (_, d) => mean(rows.map((row) => row[d])));
  const around = rows.map((row) => row.map((value, d) => value - centre[d]));

  function scores(point, spread) {
    const [slope, shift] = facts.line;
    return rows.map((row) => {
      let distance = row[facts.dim] ** 2;
      for (let d = 0; d < facts.dim; d += 1) distance += (point[d] - row[d]) ** 2;
      return slope * (distance + spread) + shift;
    });
  }

  // How the other answers lie to the first. Copies of an answer before them are passed over.
  function others(best, all, deviation) {
    const alike = (one, other) => cosine(around[one], around[other]);
    const isCopy = (item, i) => best.slice(0, i).some((one) => alike(one, item) > facts.copies);
    const different = best.filter((item, i) => i > 0 && !isCopy(item, i));
    const cosines = different.map((item) => alike(best[0], item));
    const lower = different.map((item) => all[item]);
    const last = all[best[best.length - 1]];
    const reached = (rank) => rank <= best.length;
    const gaps = FOLLOWING.filter(reached).map((rank) => {
      const gap = all[best[0]] - (lower[rank - 2] ?? last) + facts.least_gap * deviation;
      return [`log_gap_${rank}`, deviation > 0 ? Math.log(gap) : 0];
    });
    const shares = AGREEING.filter(reached).map((rank) => {
      const counted = cosines.slice(0, rank - 1);
      return [`agreement_${rank}`, counted.length ? mean(counted) : facts.copies];
    });
    return Object.fromEntries([...gaps, ...shares]);
  }

  function isStrange(point) {
    const own = unit(point);
    const near = [];
    for (let start = 0; start < seen.length; start += facts.dim) {
      near.push(dot(own, seen.subarray(start, start + facts.dim)));
    }
    const nearest = mean(near.sort((a, b) => b - a).slice(0, facts.known.nearest));
    const distance = Math.fround(1 - nearest - dot(own, facts.known.tilt));
    const kept = facts.known.kept;
    return (1 + kept.length - below(kept, distance)) / (kept.length + 1) <= facts.known.error;
  }

  return (embedding, text) => {
    const spread = embedding.log_variance.reduce((sum, value) => sum + Math.exp(value), 0);
    const all = scores(embedding.mean, spread);
    const order = all.map((_, item) => item).sort((a, b) => all[b] - all[a]);
    const found = order.map((item) => ({ item, score: all[item] }));
    const answer = { probability: null, interval: null, firstK: null, found };
    const words = namingWords(text, facts.function_words);
    if (!words) return { ...answer, verdict: "not understood", reason: WORDS.empty };
    if (isStrange(embedding.mean)) {
      return { ...answer, verdict: "not understood", reason: WORDS.strange };
    }
    const middle = mean(all);
    const deviation = Math.sqrt(mean(all.map((score) => (score - middle) ** 2)));
    const above = all[order[0]] - middle;
    const features = {
      best: all[order[0]],
      best_minus_mean: above,
      z_score: deviation > 0 ? above / deviation : 0,
      ...others(order.slice(0, facts.depth), all, deviation),
      uncertainty: Math.log(spread),
    };
    const odds = logit(facts.logistic, facts.names, features);
    return { ...answer, ...verdict(facts, odds, presence(facts, features), words) };
  };
}

function verdict(facts, odds, present, words) {
  const probability = expit(odds);
  const width = facts.width;
  const interval = width === null ? null : [expit(odds - width), expit(odds + width)];
  const firstK = listLength(facts.lengths, odds);
  const said = { probability, interval, firstK };
  if (present <= facts.absence) {
    const least = Math.round(100 * (1 - facts.absence));
    const reason = `Of 100 questions that have an answer here, ${least} find a closer one.`;
    return { ...said, verdict: "nothing matches", reason };
  }
  const isLikely = probability >= facts.threshold;
  if (interval && interval[1] - interval[0] >= facts.nothing_said) {
    return { ...said, verdict: isLikely ? "likely" : "unsure", reason: WORDS.unsaid };
  }
  const often = `${frequency(probability, interval)} such questions find the right one first`;
  const sentence = often[0].toUpperCase() + often.slice(1);
  if (!isLikely) {
    const isVague = words <= facts.few_words;
    const reason = isVague ? `Many items fit so short a question; ${often}.` : `${sentence}.`;
    return { ...said, verdict: "unsure", reason };
  }
  const promise =
    facts.risk === null ? "" : `; at most ${(100 * facts.risk).toFixed(0)} % of such answers are wrong`;
  return { ...said, verdict: "likely", reason: `${sentence}${promise}.` };
}

function frequency(probability, interval) {
  const [low, high] = (interval ?? [0, 0]).map((end) => Math.round(10 * end));
  if (high - low > 1 && interval[1] - interval[0] >= 0.2) return `about ${low} to ${high} in 10`;
  if (probability < 0.01) return "fewer than 1 in 100";
  if (probability < 0.1) return `about ${Math.round(100 * probability)} in 100`;
  if (probability >= 0.95) return "nearly all";
  return `about ${Math.round(10 * probability)} in 10`;
}

function presence(facts, features) {
  if (!facts.present.length) return 1;
  const value = Math.fround(logit(facts.matcher, facts.names, features));
  const atMost = below(facts.present, value, true);
  return (1 + atMost) / (facts.present.length + 1);
}

function listLength(lengths, odds) {
  if (lengths === null) return null;
  const shape = interpolated(Math.fround(odds), lengths.confidence, lengths.shape);
  const length = Math.floor(Math.exp(shape + lengths.shift) + 1e-6);
  return length >= lengths.most ? null : Math.max(1, length);
}

function interpolated(x, xs, ys) {
  const after = below(xs, x, true);
  if (!after) return ys[0];
  if (after === xs.length) return ys[xs.length - 1];
  const share = (x - xs[after - 1]) / (xs[after] - xs[after - 1]);
  return ys[after - 1] + share * (ys[after] - ys[after - 1]);
}

// How many words of a text name something, as `zoo.data.captions.unknown_words`.
function namingWords(text, functionWords) {
  const bare = text.toLowerCase().replace(/['’]/g, "");
  const words = bare.replace(/[^\p{L}\p{M}\p{N}]+/gu, " ").split(" ");
  return words.filter((word) => word && !functionWords.includes(word)).length;
}

function logit({ centre, spread, weights, bias }, names, features) {
  const parts = names.map((name, i) => ((features[name] - centre[i]) / spread[i]) * weights[i]);
  return parts.reduce((sum, part) => sum + part, bias);
}

// How many of rising numbers are below one, or at most it.
function below(rising, value, orEqual = false) {
  let [low, high] = [0, rising.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rising[middle] < value || (orEqual && rising[middle] === value)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function dot(one, other) {
  let sum = 0;
  for (let i = 0; i < one.length; i += 1) sum += one[i] * other[i];
  return sum;
}

function unit(vector) {
  const length = Math.sqrt(dot(vector, vector));
  return Float64Array.from(vector, (value) => value / length);
}

function cosine(one, other) {
  const lengths = Math.sqrt(dot(one, one) * dot(other, other));
  return Math.max(-1, Math.min(1, dot(one, other) / Math.max(lengths, 1e-12)));
}

function expit(value) {
  return 1 / (1 + Math.exp(-value));
}
