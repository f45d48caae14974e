// What `zoo.Retriever` says to a question whose embedding is there: the same numbers and words.

const AGREEING = [5, 10]; // ranks, of `zoo.confidence.agreement`
const WORDS = {
  strange: "The question lies far from all that was learned.",
  empty: "It has no words that name something.",
};

/**
 * A function from an embedding, its text and its prior to an answer: verdict, reason, probability,
 * wanted, interval, number, fitting, firstK (null where nothing can be said or promised) and
 * `found`, every item best first, with its score and how likely it fits.
 * @param {object} facts of `tools/live_facts.py`
 * @param {object} arrays Float32Arrays: `gallery`, (items, dim + 1), means and the root of the total
 *   variance; `reference`, (items, dim), of the probes; `seen`, (texts, dim), of length one
 */
export function judge(facts, { gallery, reference, seen }) {
  const dim = facts.dim;
  const rows = rowsOf(gallery, dim + 1);
  const probes = rowsOf(reference, dim);
  const texts = rowsOf(seen, dim);
  const centre = Float64Array.from({ length: dim + 1 }, (_, d) => mean(rows.map((row) => row[d])));
  const around = rows.map((row) => row.map((value, d) => value - centre[d]));

  function score(row, spread, point, total) {
    let distance = spread ** 2 + total;
    for (let d = 0; d < dim; d += 1) distance += (point[d] - row[d]) ** 2;
    return facts.line[0] * distance + facts.line[1];
  }

  // How the other answers lie to the first. Copies of an answer before them are passed over.
  function others(best, all) {
    const alike = (one, other) => cosine(around[one], around[other]);
    const isCopy = (item, i) => best.slice(0, i).some((one) => alike(one, item) > facts.copies);
    const different = best.filter((item, i) => i > 0 && !isCopy(item, i));
    const cosines = different.map((item) => alike(best[0], item));
    const agreements = AGREEING.filter((rank) => rank <= best.length).map((rank) => {
      const counted = cosines.slice(0, rank - 1);
      return [`agreement_${rank}`, counted.length ? mean(counted) : facts.copies];
    });
    const second = all[different[0] ?? best[best.length - 1]];
    return { second, agreements: Object.fromEntries(agreements) };
  }

  function isStrange(point) {
    const own = unit(point);
    const near = texts.map((text) => dot(own, text)).sort((a, b) => b - a);
    const nearest = mean(near.slice(0, facts.known.nearest));
    const distance = Math.fround(1 - nearest - dot(own, facts.known.tilt));
    const kept = facts.known.kept;
    const nearer = kept.filter((value) => value < distance).length;
    return (1 + kept.length - nearer) / (kept.length + 1) <= facts.known.error;
  }

  return (embedding, named, prior) => {
    const point = embedding.mean;
    const total = embedding.log_variance.reduce((sum, value) => sum + Math.exp(value), 0);
    const all = rows.map((row) => score(row, row[dim], point, total));
    const order = all.map((_, item) => item).sort((a, b) => all[b] - all[a]);
    const found = order.map((item) => ({ item, score: all[item], fit: null }));
    const none = { probability: null, wanted: null, interval: null, number: null, fitting: null };
    const lost = { ...none, firstK: null, found, verdict: "not understood" };
    if (!named) return { ...lost, reason: WORDS.empty };
    if (isStrange(point)) return { ...lost, reason: WORDS.strange };
    const best = order.slice(0, facts.depth);
    const middle = mean(all);
    const scores = {
      all: order.map((item) => all[item]),
      top: best.map((item) => all[item]),
      mean: middle,
      variance: mean(all.map((value) => (value - middle) ** 2)),
      size: all.length,
      ...others(best, all),
    };
    const near = probes.map((row, i) => score(row, facts.fits.spreads[i], point, total));
    const nearest = near.sort((a, b) => b - a).slice(0, facts.fits.nearest);
    return { ...said(facts, scores, mean(nearest), prior), firstK: facts.first_k };

    function said(...known) {
      const { fits, ...answer } = judged(...known);
      return { ...answer, found: found.map((one, rank) => ({ ...one, fit: fits[rank] })) };
    }
  };
}

// `zoo.confidence.judge.Judge` of one question.
function judged(facts, scores, reference, prior) {
  const isShort = prior !== null;
  const { top, mean: middle, variance, second } = scores;
  const deviation = Math.sqrt(variance);
  const features = {
    best_minus_mean: top[0] - middle,
    z_score: deviation > 0 ? (top[0] - middle) / deviation : 0,
    log_gap_2: deviation > 0 ? Math.log(top[0] - second + facts.least_gap * deviation) : 0,
    ...scores.agreements,
  };
  const odds = logit(facts.logistic, facts.names.map((name) => features[name]));
  const others = chance(facts.fits, prior);
  const number = expected(facts.fits, scores, others);
  const gap = top[0] - second + facts.least_gap * deviation;
  const presence = logit(facts.fits.presence, [
    top[0],
    top[0] - reference,
    Math.log(Math.max(gap, 1e-9)),
    Math.log(scores.size),
    Math.log(number + facts.fits.least_number),
  ]);
  const factor = isShort ? 1 : expit(presence + facts.fits.answerable);
  const own = [expit(odds), ...later(facts.ranked, odds, scores)];
  const fits = scores.all.map((value, rank) => {
    const wanted = isShort ? 0 : own[rank];
    return factor * (wanted + (1 - wanted) * others(value));
  });
  const byChance = others(top[0]);
  const interval = [odds - facts.width, odds + facts.width].map((end) => {
    const wanted = isShort ? 0 : expit(end);
    return factor * (wanted * (1 - byChance) + byChance);
  });
  const answer = {
    fits,
    interval: isShort ? null : interval,
    probability: fits[0],
    wanted: isShort ? null : own[0],
    number: factor * (number + (isShort ? 0 : facts.brought)),
    fitting: leading(fits, facts.fit),
  };
  const isAbsent = isShort
    ? fits[0] < facts.fits.words_below
    : presence <= facts.fits.absent_below && fits[0] < facts.low;
  return { ...answer, ...verdict(facts, { ...answer, interval }, isShort, isAbsent) };
}

function verdict(facts, { fits, interval, number }, isShort, isAbsent) {
  const { noun } = facts;
  if (isAbsent) {
    const least = Math.round(100 * (1 - facts.absence));
    const reason = isShort
      ? `No ${noun} here is likely to fit.`
      : `${least} % of answerable questions match better than this one.`;
    return { verdict: "nothing matches", reason };
  }
  const level = fits[0] >= facts.threshold ? "likely" : "unsure";
  if (interval[1] - interval[0] >= facts.nothing_said) {
    const reason = `There are too few examples to say how often such first ${noun}s fit in this gallery.`;
    return { verdict: level, reason };
  }
  const often = `${frequency(fits[0], interval)} such first ${noun}s fit.`;
  const reason = often[0].toUpperCase() + often.slice(1);
  return { verdict: level, reason: `${reason} ${howMany(facts, level, fits, number)}` };
}

function howMany(facts, level, fits, number) {
  const { noun } = facts;
  if (number < 0.5) return `Few ${noun}s here fit, if any.`;
  const isSure = level === "likely";
  if (number < 1.5) return `About one ${noun} here ${isSure ? "fits" : "may fit"}.`;
  const about = `bout ${rounded(number)} ${noun}s here ${isSure ? "fit" : "may fit"}`;
  if (!isSure && number >= facts.many) return `The question is general: a${about}.`;
  const sure = leading(fits, facts.sure);
  return sure > 1 ? `A${about}; the first ${sure} surely.` : `A${about}.`;
}

function rounded(number) {
  const whole = Math.round(number);
  const unit = 10 ** Math.max(0, String(whole).length - 2);
  return (Math.round(whole / unit) * unit).toLocaleString("en-US");
}

function frequency(probability, interval) {
  const [low, high] = interval.map((end) => Math.round(10 * end));
  if (high - low > 1 && interval[1] - interval[0] >= 0.2) return `about ${low} to ${high} in 10`;
  if (probability < 0.01) return "fewer than 1 in 100";
  if (probability < 0.1) return `about ${Math.round(100 * probability)} in 100`;
  if (probability >= 0.95) return "nearly all";
  return `about ${Math.round(10 * probability)} in 10`;
}

function leading(fits, least) {
  const end = fits.findIndex((fit) => fit < least);
  return end < 0 ? fits.length : end;
}

// How likely an item of a score fits that is not the wanted one: `Fits.others`.
function chance({ sentence, words }, prior) {
  if (prior === null) return (value) => expit(sentence[0] * value + sentence[1]);
  return (value) => expit(words[0] * value + words[1] * prior + words[2]);
}

// The expected number of items that fit: `Fits.number`.
function expected({ nodes, weights, reach }, { top, mean: middle, variance, size }, others) {
  const found = top.map(others).reduce(sum);
  const rest = size - top.length;
  const some = Math.max(rest, 1);
  const away = (size * middle - top.reduce(sum)) / some;
  const squares = size * (variance + middle ** 2) - top.map((value) => value ** 2).reduce(sum);
  const deviation = Math.sqrt(Math.max(squares / some - away ** 2, 1e-12));
  const end = Math.min((top[top.length - 1] - away) / deviation, reach);
  const half = Math.max((end + reach) / 2, 1e-6);
  const at = nodes.map((node) => half * (node + 1) - reach);
  const density = at.map((z, i) => weights[i] * Math.exp(-0.5 * z ** 2));
  const likely = at.map((z, i) => density[i] * others(away + deviation * z));
  return found + (rest * likely.reduce(sum)) / density.reduce(sum);
}

// How likely the results after the first are wanted items: `Confidence.later`.
function later(ranked, odds, { all, variance }) {
  const deviation = Math.max(Math.sqrt(variance), 1e-12);
  return all.slice(1).map((value, i) => {
    if (ranked === null) return 0;
    const behind = Math.min((all[0] - value) / deviation, 1e6);
    return expit(logit(ranked, [odds, behind, Math.log(i + 2)]));
  });
}

function logit({ centre, spread, weights, bias }, features) {
  return features
    .map((value, i) => ((value - centre[i]) / spread[i]) * weights[i])
    .reduce(sum, bias);
}

function rowsOf(values, wide) {
  const count = values.length / wide;
  return Array.from({ length: count }, (_, i) => values.subarray(i * wide, (i + 1) * wide));
}

function sum(one, other) {
  return one + other;
}

function mean(values) {
  return values.reduce(sum, 0) / values.length;
}

function dot(one, other) {
  let total = 0;
  for (let i = 0; i < one.length; i += 1) total += one[i] * other[i];
  return total;
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
