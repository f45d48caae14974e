// The model in the browser: what is fetched, the caption encoder, and the judge behind it.

import { judge } from "./judge.js";
import { questions } from "./questions.js";
import { tokenizer } from "./tokenizer.js";

const BUILT = new URL("built/", import.meta.url); // by `make live`

/** What was built, or null: `{bytes, files, photos, words}`. */
export async function manifest() {
  const response = await fetch(new URL("manifest.json", BUILT)).catch(() => null);
  return response?.ok ? response.json() : null;
}

/**
 * Fetches everything once.
 * @param {object} built the manifest
 * @param {function(number)} progress called with the bytes that have come
 * @returns a function from a text to the judge's answer, with the photo of each item that is found
 */
export async function open(built, progress) {
  let come = 0;
  const seen = (bytes) => progress((come += bytes));
  const files = Object.fromEntries(
    await Promise.all(built.files.map(async (name) => [name, await unpacked(name, seen)])),
  );
  const text = (name) => new TextDecoder().decode(files[name]);
  const facts = JSON.parse(text("facts.json.gz"));
  const say = judge(facts, {
    gallery: new Float32Array(files["gallery.f32.gz"]),
    reference: fromHalves(files["reference.f16.gz"]),
    seen: fromHalves(files["seen.f16.gz"]),
  });
  const { asked, named, prior } = questions(facts, new Uint16Array(files["photos.u16.gz"]));
  const toIds = tokenizer(text("pieces.txt.gz").split("\n"), built.words);
  const encode = await encoder(files["captions.onnx.gz"], files["ort.wasm.gz"]);
  const ask = async (question) => {
    const text = asked(question);
    const answer = say(await encode(toIds(text)), named(text), prior(text));
    const found = answer.found.map((one) => ({ ...one, photo: built.photos[one.item] }));
    return { ...answer, found, asked: text === question ? null : text };
  };
  await ask("a photo"); // the first is slower
  return { ask, toIds, facts, photo: (name) => new URL(`photos/${name}`, BUILT).href };
}

async function encoder(model, wasmBinary) {
  const ort = await import(new URL("ort.js", BUILT));
  const mjs = new URL("ort-wasm.js", BUILT).href;
  Object.assign(ort.env.wasm, { numThreads: 1, wasmBinary, wasmPaths: { mjs } });
  const session = await ort.InferenceSession.create(model, { executionProviders: ["wasm"] });
  return async (ids) => {
    const captions = new ort.Tensor("int32", Int32Array.from(ids), [1, ids.length]);
    const found = await session.run({ captions });
    return { mean: found.mean.data, log_variance: found.log_variance.data };
  };
}

async function unpacked(name, seen) {
  const response = await fetch(new URL(name, BUILT));
  if (!response.ok) throw new Error(`${name}: the server answers ${response.status}`);
  const parts = [];
  const reader = response.body.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    parts.push(part.value);
    seen(part.value.length);
  }
  const whole = new Blob(parts);
  // Some servers unpack a .gz themselves.
  const [first, second] = new Uint8Array(await whole.slice(0, 2).arrayBuffer());
  const isPacked = first === 0x1f && second === 0x8b;
  const unpack = () => whole.stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(isPacked ? unpack() : whole).arrayBuffer();
}

function fromHalves(buffer) {
  return Float32Array.from(new Uint16Array(buffer), (bits) => {
    const [sign, exponent, rest] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
    return sign * (exponent ? 2 ** (exponent - 15) * (1 + rest / 1024) : 2 ** -24 * rest);
  });
}
