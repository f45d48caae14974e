// The map: thumbnails with halos on a canvas; d3 pans, zooms and finds what is pointed at.

import { h, ask, percent, complain, plural } from "./dom.js";
import { source } from "./tiles.js";

const TILE = 64, COLUMNS = 16, PER_SHEET = 256; // as of demo/pictures.py
const SIZE = 54, SIZE_ON_PHONE = 40; // pixels of a thumbnail where the map is not zoomed
const FITS = 0.5;

export async function mapPage(state, context, show) {
  const found = await ask("map-items", { view: state.view });
  const map = new GalleryMap(found, state, context);
  show(map.section);
  map.start();
  window.haloMap = map; // for tests of its speed
  if (state.q) await map.drop(state.q);
}

class GalleryMap {
  constructor(found, state, context) {
    Object.assign(this, { found, state, context, question: null, hovered: null, tiles: [], magnified: 0 });
    this.canvas = h("canvas", { tabindex: 0, role: "img", "aria-label": this.label() });
    this.card = h("div", { class: "map-card", hidden: true });
    this.note = h("p", { class: "map-note" }, found.halo ? "A wider halo: less clear to the model." : "");
    const button = (label, text, action) => h("button", { type: "button", "aria-label": label, onclick: action }, text);
    const controls = h("div", { class: "map-controls" },
      button("Zoom in", "+", () => this.zoomBy(1.6)), button("Zoom out", "−", () => this.zoomBy(1 / 1.6)),
      button("Show all", "⤢", () => this.reset()));
    this.section = h("section", { class: "map" }, this.canvas, this.card, controls, h("div", { class: "map-foot" }, this.note, this.magnifier()));
  }

  label() {
    return `Map of ${plural(this.found.rows.length, this.context.about.noun)}; photos that look alike are near each other. Arrows move it, plus and minus zoom.`;
  }

  // Ellipses are true to scale, so most are too small to see: a magnifier that says its factor.
  magnifier() {
    if (!this.found.ellipses) return null;
    const output = h("output", {}, "off");
    const input = h("input", { type: "range", min: 0, max: 40, step: 1, value: 0, "aria-label": "Size of the ellipses" });
    input.addEventListener("input", () => {
      this.magnified = Number(input.value);
      output.textContent = this.magnified === 0 ? "off" : this.magnified === 1 ? "true size" : `× ${this.magnified}`;
      this.draw();
    });
    return h("label", { class: "magnifier" }, "Ellipses ", input, output);
  }

  start() {
    const { x, y } = this.found;
    const [left, right] = d3.extent(x), [low, high] = d3.extent(y);
    this.bounds = { left, low, width: right - left || 1, height: high - low || 1 };
    this.order = d3.shuffler(d3.randomLcg(0.3))(d3.range(x.length));
    this.tree = d3.quadtree(d3.range(x.length), (i) => x[i], (i) => y[i]);
    this.transform = d3.zoomIdentity;
    this.zoom = d3.zoom().scaleExtent([this.found.elements ? 0.2 : 0.7, 60]).on("zoom", (event) => {
      this.transform = event.transform;
      this.draw();
    });
    d3.select(this.canvas).call(this.zoom).on("dblclick.zoom", null);
    this.canvas.addEventListener("pointermove", (event) => this.point(event.offsetX, event.offsetY));
    this.canvas.addEventListener("pointerleave", () => this.point(-1e4, -1e4));
    this.canvas.addEventListener("click", (event) => this.press(event));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.watcher = new ResizeObserver(() => this.resize());
    this.watcher.observe(this.canvas);
    this.resize();
    if (this.context.about.photos) this.load();
  }

  // Sheets of tiles, each cut into round pictures once.
  async load() {
    for (let number = 0; number < this.found.sheets; number += 1) {
      const image = new Image();
      image.src = `photo/sheet/${number}`;
      try {
        await image.decode();
      } catch {
        return complain("The photos of the map cannot be read.");
      }
      if (!this.canvas.isConnected) return undefined;
      this.tiles[number] = rounded(image);
      this.draw();
    }
    return undefined;
  }

  resize() {
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) return;
    Object.assign(this, { width, height, ratio, base: width < 600 ? SIZE_ON_PHONE : SIZE });
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const { bounds } = this;
    this.scale = Math.min((width - 120) / bounds.width, (height - 150) / bounds.height);
    this.left = (width - this.scale * bounds.width) / 2;
    this.top = (height - this.scale * bounds.height) / 2;
    this.level = null;
    this.draw();
  }

  // Where a point of the plane is on the canvas, in pixels.
  at(x, y) {
    const { bounds, transform } = this;
    return [
      transform.applyX(this.left + (x - bounds.left) * this.scale),
      transform.applyY(this.top + (bounds.low + bounds.height - y) * this.scale),
    ];
  }

  get size() {
    return this.base * Math.min(3.2, Math.pow(this.transform.k, 0.45));
  }

  // Which items have room for a thumbnail at this zoom; others are dots. It changes by steps.
  chosen() {
    const level = Math.round(4 * Math.log2(this.transform.k));
    if (level !== this.level) {
      this.level = level;
      const k = 2 ** (level / 4);
      const room = (this.base * Math.min(3.2, k ** 0.45) * 0.98) / (this.scale * k);
      this.shown = withRoom(this.first().concat(this.order), this.found, room);
    }
    return this.shown;
  }

  // What fits the question comes first, so that it has room.
  first() {
    return this.question ? this.question.results.filter((one) => one.fits >= FITS).map((one) => this.place.get(one.item)).filter((i) => i !== undefined) : [];
  }

  draw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = null;
      this.paint();
    });
  }

  paint() {
    const { canvas, found, ratio, width, height } = this;
    if (!canvas.isConnected) return;
    const context = canvas.getContext("2d");
    const style = getComputedStyle(canvas);
    const color = (name) => style.getPropertyValue(name).trim();
    const colors = { dot: color("--dot"), halo: color("--glow"), accent: color("--accent"), ground: color("--ground") };
    const fitting = this.question?.fitting;
    const shown = this.chosen(), { size } = this;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const inside = ([px, py], margin) => px > -margin && py > -margin && px < width + margin && py < height + margin;
    context.fillStyle = colors.dot;
    for (let i = 0; i < found.x.length; i += 1) {
      if (shown.has(i)) continue;
      const place = this.at(found.x[i], found.y[i]);
      if (inside(place, 4)) context.fillRect(place[0] - 2, place[1] - 2, 4, 4);
    }
    const visible = [];
    for (const i of shown) {
      const place = this.at(found.x[i], found.y[i]);
      if (inside(place, size * 1.5)) visible.push([i, ...place]);
    }
    if (found.halo) {
      const glow = this.glow(colors.halo);
      for (const [i, px, py] of visible) {
        context.globalAlpha = fitting && !fitting.has(found.rows[i]) ? 0.35 : 1;
        const reach = size / 2 + 3 + found.halo[i] * size * 0.5;
        context.drawImage(glow, px - reach, py - reach, 2 * reach, 2 * reach);
      }
      context.globalAlpha = 1;
    }
    if (this.magnified && found.ellipses) this.ellipses(context, visible, colors);
    if (this.question) this.lines(context, colors);
    for (const [i, px, py] of visible) {
      const fits = fitting?.get(found.rows[i]);
      this.thumbnail(context, i, px, py, fits === undefined ? size : size * 1.15, colors);
      if (!fitting || fits !== undefined) continue;
      context.globalAlpha = 0.5; // a veil over what does not fit
      context.fillStyle = colors.ground;
      context.beginPath();
      context.arc(px, py, size / 2 + 0.5, 0, 2 * Math.PI);
      context.fill();
      context.globalAlpha = 1;
    }
    if (this.question) this.star(context, colors);
    if (this.hovered !== null) this.outline(context, colors, size);
  }

  thumbnail(context, i, px, py, size, colors) {
    const row = this.found.rows[i];
    const sheet = this.tiles[Math.floor(row / PER_SHEET)];
    if (!sheet) {
      context.fillStyle = colors.dot;
      context.beginPath();
      context.arc(px, py, size / 2, 0, 2 * Math.PI);
      context.fill();
      return;
    }
    const place = row % PER_SHEET;
    context.drawImage(sheet, (place % COLUMNS) * TILE, Math.floor(place / COLUMNS) * TILE, TILE, TILE, px - size / 2, py - size / 2, size, size);
  }

  // A soft disc, drawn once per colour.
  glow(color) {
    if (this.glowColor !== color) {
      this.glowColor = color;
      this.glowImage = Object.assign(document.createElement("canvas"), { width: 96, height: 96 });
      const context = this.glowImage.getContext("2d");
      const soft = context.createRadialGradient(48, 48, 18, 48, 48, 48);
      for (const [at, alpha] of [[0, 0.75], [0.45, 0.5], [0.8, 0.2], [1, 0]]) soft.addColorStop(at, `rgb(${color} / ${alpha})`);
      context.fillStyle = soft;
      context.fillRect(0, 0, 96, 96);
    }
    return this.glowImage;
  }

  ellipses(context, visible, colors) {
    context.strokeStyle = colors.accent;
    context.lineWidth = 1;
    const scale = this.scale * this.transform.k * this.magnified;
    for (const [i, px, py] of visible) ellipse(context, px, py, this.found.ellipses[i], scale);
    if (this.question?.ellipses) {
      context.lineWidth = 2;
      ellipse(context, ...this.at(this.question.x, this.question.y), this.question.ellipses, scale);
    }
  }

  // Lines from the question to what may fit, the thicker the likelier.
  lines(context, colors) {
    const from = this.at(this.question.x, this.question.y);
    context.strokeStyle = colors.accent;
    for (const one of this.question.results) {
      const i = this.place.get(one.item);
      if (i === undefined || !(one.fits >= 0.2)) continue;
      context.globalAlpha = 0.25 + 0.6 * one.fits;
      context.lineWidth = 0.6 + 3 * one.fits;
      context.beginPath();
      context.moveTo(...from);
      context.lineTo(...this.at(this.found.x[i], this.found.y[i]));
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  star(context, colors) {
    const [px, py] = this.at(this.question.x, this.question.y);
    if (this.question.halo !== null) {
      const reach = 22 + 34 * this.question.halo;
      context.drawImage(this.glow(colors.halo), px - reach, py - reach, 2 * reach, 2 * reach);
    }
    context.fillStyle = colors.accent;
    context.beginPath();
    context.arc(px, py, 11, 0, 2 * Math.PI);
    context.fill();
    context.fillStyle = "#fff";
    context.font = "700 14px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText("?", px, py + 0.5);
  }

  outline(context, colors, size) {
    const i = this.hovered;
    const [px, py] = this.at(this.found.x[i], this.found.y[i]);
    if (this.found.elements) this.elements(context, colors, i, px, py);
    context.strokeStyle = colors.accent;
    context.lineWidth = 2.5;
    context.beginPath();
    context.arc(px, py, this.shown.has(i) ? size / 2 + 1 : 5, 0, 2 * Math.PI);
    context.stroke();
  }

  // The elements of a set, joined to its middle.
  elements(context, colors, i, px, py) {
    context.strokeStyle = context.fillStyle = colors.accent;
    context.lineWidth = 1.2;
    for (const element of this.found.elements[i]) {
      const [ex, ey] = this.at(...element);
      context.beginPath();
      context.moveTo(px, py);
      context.lineTo(ex, ey);
      context.stroke();
      context.beginPath();
      context.arc(ex, ey, 4, 0, 2 * Math.PI);
      context.fill();
    }
  }

  // The item under a place of the canvas, or null.
  under(px, py) {
    const { bounds, transform } = this;
    const x = (transform.invertX(px) - this.left) / this.scale + bounds.left;
    const y = bounds.low + bounds.height - (transform.invertY(py) - this.top) / this.scale;
    const reach = this.size / 2 / (this.scale * transform.k);
    let best = null;
    // A thumbnail is in front of dots.
    for (const i of this.chosen()) {
      const far = Math.hypot(this.found.x[i] - x, this.found.y[i] - y);
      if (far <= reach && (best === null || far < best[1])) best = [i, far];
    }
    return best ? best[0] : this.tree.find(x, y, 8 / (this.scale * transform.k)) ?? null;
  }

  point(px, py) {
    const hovered = px < 0 ? null : this.under(px, py);
    if (hovered === this.hovered) return;
    this.hovered = hovered;
    this.canvas.style.cursor = hovered === null ? "grab" : "pointer";
    this.draw();
    this.card.hidden = hovered === null;
    if (hovered === null) return;
    const row = this.found.rows[hovered];
    const fits = this.question?.results.find((one) => one.item === row)?.fits;
    const share = this.found.halo?.[hovered];
    this.card.replaceChildren(...[
      this.context.about.photos ? h("img", { src: source("thumbnail", { item: row }), alt: "" }) : null,
      h("strong", {}, this.found.names[hovered]),
      fits === undefined || fits === null ? null : h("span", {}, `Fits: ${percent(fits)}`),
      share === undefined ? null : h("span", {}, `${percent(share)} are clearer to the model`),
    ].filter(Boolean));
    const left = px + 24 + 200 > this.width ? px - 224 : px + 24;
    Object.assign(this.card.style, { left: `${Math.max(8, left)}px`, top: `${Math.min(Math.max(8, py - 80), this.height - 240)}px` });
  }

  press(event) {
    const i = this.under(event.offsetX, event.offsetY);
    if (i === null || !this.context.about.photos) return;
    const row = this.found.rows[i];
    const fits = this.question?.results.find((one) => one.item === row)?.fits ?? null;
    const photo = { item: row, name: this.found.names[i], uncertainty: this.found.halo?.[i] ?? null, fits };
    this.context.view([photo], 0);
  }

  key(event) {
    const by = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
    if (by) d3.select(this.canvas).call(this.zoom.translateBy, by[0] / this.transform.k, by[1] / this.transform.k);
    else if (event.key === "+" || event.key === "=") this.zoomBy(1.6);
    else if (event.key === "-") this.zoomBy(1 / 1.6);
    else if (event.key === "0") this.reset();
    else return;
    event.preventDefault();
  }

  zoomBy(factor) {
    d3.select(this.canvas).transition().duration(still() ? 0 : 200).call(this.zoom.scaleBy, factor);
  }

  reset() {
    d3.select(this.canvas).transition().duration(still() ? 0 : 300).call(this.zoom.transform, d3.zoomIdentity);
  }

  // The question: its place, its halo, and lines to what may fit.
  async drop(words) {
    const values = { q: words, view: this.state.view };
    const [place, answer] = await Promise.all([ask("map-question", values), ask("ask", values)]);
    this.place = new Map(this.found.rows.map((row, i) => [row, i]));
    const may = answer.results.filter((one) => one.fits >= 0.2);
    // Without probabilities nothing stands out.
    const fitting = answer.expected ? new Map(may.map((one) => [one.item, one.fits])) : null;
    this.question = { ...place, results: answer.results, fitting };
    this.level = null;
    this.note.textContent = `“${words}”: ${answer.verdict}. ${answer.reason}`;
    this.draw();
  }
}

// Items of an order that are at least `room` apart.
function withRoom(order, found, room) {
  const taken = new Map(), shown = new Set();
  const cell = (i, dx = 0, dy = 0) => `${Math.floor(found.x[i] / room) + dx},${Math.floor(found.y[i] / room) + dy}`;
  for (const i of order) {
    if (shown.has(i)) continue;
    let isFree = true;
    for (let dx = -1; dx <= 1 && isFree; dx += 1) {
      for (let dy = -1; dy <= 1 && isFree; dy += 1) {
        const other = taken.get(cell(i, dx, dy));
        isFree = other === undefined || Math.hypot(found.x[other] - found.x[i], found.y[other] - found.y[i]) >= room;
      }
    }
    if (!isFree) continue;
    taken.set(cell(i), i);
    shown.add(i);
  }
  return shown;
}

function rounded(image) {
  const sheet = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
  const context = sheet.getContext("2d");
  context.beginPath();
  for (let y = 0; y < image.height; y += TILE) {
    for (let x = 0; x < image.width; x += TILE) {
      context.moveTo(x + TILE, y + TILE / 2);
      context.arc(x + TILE / 2, y + TILE / 2, TILE / 2, 0, 2 * Math.PI);
    }
  }
  context.clip();
  context.drawImage(image, 0, 0);
  return sheet;
}

function ellipse(context, px, py, [a, b, angle], scale) {
  context.beginPath();
  context.ellipse(px, py, a * scale, b * scale, -angle, 0, 2 * Math.PI);
  context.stroke();
}

function still() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
