"use strict";

(() => {
const trace = JSON.parse(document.getElementById("results").textContent);
const NS = "http://www.w3.org/2000/svg";
const LEFT = 46, RIGHT = 12, BOTTOM = 26, TOP = 6, WIDTH = 1040;
const MIN_INFLUENCE = 0.001; // of causes of causes
const rasters = document.querySelector(".rasters");
const view = { chosen: null, depth: 1, color: "causes", turn: [0.6, 0.35], marks: new Map() };

function element(name, attributes = {}, parent = null, words = "") {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (words) made.textContent = words;
  if (parent) parent.append(made);
  return made;
}

function html(name, attributes = {}, parent = null, words = "") {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (words) made.textContent = words;
  if (parent) parent.append(made);
  return made;
}

const label = (at) => {
  const [layer, time, neuron] = trace.spikes[at];
  return `${trace.layers[layer].name}, neuron ${neuron}, step ${time}`;
};
const sign = (value) => (value > 0 ? "excites" : "inhibits");
const shown = (value) => (value === null ? "–" : value.toPrecision(4).replace("-", "−"));

/** About five round numbers from 0 to a maximum. */
function ticks(high) {
  const rough = Math.max(1, high) / 5;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((k) => k * size).find((k) => k >= rough));
  return Array.from({ length: Math.floor(high / step) + 1 }, (_, k) => k * step);
}

function caption(figure, layer) {
  const words = html("figcaption", {}, figure, layer.name);
  html("small", {}, words, `${layer.kind}, ${layer.neurons} neurons`);
}

/** One panel: the spikes of a layer. */
function panel(layer, index) {
  const height = Math.min(420, Math.max(70, 9 * layer.neurons)) + TOP + BOTTOM;
  const figure = html("figure", {}, rasters);
  caption(figure, layer);
  const svg = element("svg", { class: "raster", viewBox: `0 0 ${WIDTH} ${height}`, role: "img" }, figure);
  svg.setAttribute("aria-label", `Spikes of ${layer.name}`);
  svg.dataset.layer = index;
  const inner = { width: WIDTH - LEFT - RIGHT, height: height - TOP - BOTTOM };
  const x = (time) => LEFT + ((time + 0.5) / layer.steps) * inner.width;
  const y = (neuron) => height - BOTTOM - ((neuron + 0.5) / layer.neurons) * inner.height;
  element("rect", { class: "area", x: LEFT, y: TOP, width: inner.width, height: inner.height }, svg);
  for (const tick of ticks(layer.steps - 1)) {
    element("text", { class: "tick", x: x(tick), y: height - BOTTOM + 16 }, svg, String(tick));
  }
  for (const tick of ticks(layer.neurons - 1)) {
    element("text", { class: "tick end", x: LEFT - 6, y: y(tick) + 3.5 }, svg, String(tick));
  }
  element("text", { class: "tick end", x: WIDTH - RIGHT, y: height - BOTTOM + 16 }, svg, "step");
  const size = Math.max(2.5, Math.min(9, (0.8 * inner.height) / layer.neurons));
  const beams = element("g", {}, svg);
  const body = element("g", {}, svg);
  trace.spikes.forEach(([at, time, neuron], spike) => {
    if (at !== index) return;
    const mark = element("path", { class: "spike", d: `M${x(time)} ${y(neuron) - size / 2}v${size}` }, body);
    mark.dataset.spike = spike;
    element("title", {}, mark, label(spike));
    view.marks.set(spike, mark);
  });
  const ring = element("circle", { class: "ring", r: Math.max(6, size * 0.9), visibility: "hidden" }, svg);
  return { svg, x, y, beams, ring, size };
}

const panels = trace.layers.map(panel);

/** Spike of a panel that is nearest to a point of the page; null if none is near. */
function nearest(index, event) {
  const { svg, x, y } = panels[index];
  const box = svg.getBoundingClientRect();
  const scale = WIDTH / box.width;
  const point = [(event.clientX - box.x) * scale, (event.clientY - box.y) * scale];
  let best = null, distance = (14 * scale) ** 2;
  trace.spikes.forEach(([layer, time, neuron], at) => {
    if (layer !== index) return;
    const away = (x(time) - point[0]) ** 2 + (y(neuron) - point[1]) ** 2;
    if (away < distance) [best, distance] = [at, away];
  });
  return best;
}

/** Edges of the causal graph of a spike: [cause, effect, contribution, depth, influence]. */
function graph(spike, depth) {
  const edges = [];
  const influence = new Map([[spike, 1]]);
  let front = [spike];
  for (let level = 1; level <= depth && front.length; level += 1) {
    const next = new Set();
    for (const effect of front) {
      const causes = trace.causes[effect];
      if (!causes) continue;
      for (const [cause, value] of causes.spikes) {
        const share = (influence.get(effect) * Math.abs(value)) / causes.magnitude;
        if (level > 1 && share < MIN_INFLUENCE) continue;
        if (!influence.has(cause)) next.add(cause);
        influence.set(cause, Math.max(share, influence.get(cause) ?? 0));
        edges.push([cause, effect, value, level]);
      }
    }
    front = [...next];
  }
  return edges;
}

const words = document.querySelectorAll(".key .excites, .key .inhibits");

function paint() {
  words[0].textContent = view.color === "loss" ? "raises the loss" : "raises the voltage";
  const top = Math.max(...trace.causes.map((each) => Math.abs(each?.loss ?? 0)), 1e-30);
  for (const [at, mark] of view.marks) {
    const loss = trace.causes[at]?.loss;
    const colored = view.color === "loss" && loss !== undefined && loss !== null;
    mark.setAttribute("class", colored ? `spike mixed ${sign(loss)}` : "spike");
    mark.style.opacity = colored ? 0.15 + 0.85 * Math.sqrt(Math.abs(loss) / top) : "";
  }
  for (const { beams, ring } of panels) {
    beams.replaceChildren();
    ring.setAttribute("visibility", "hidden");
  }
  if (view.chosen === null) return;
  const edges = graph(view.chosen, view.depth);
  for (const [cause, effect, value, level] of view.color === "loss" ? [] : edges.toReversed()) {
    const mark = view.marks.get(cause);
    mark.setAttribute("class", `spike ${level === 1 ? "lit" : "chain"} ${sign(value)}`);
    mark.style.opacity = "";
    mark.parentNode.append(mark);
    const [from, to] = [trace.spikes[cause], trace.spikes[effect]];
    if (from[0] === to[0]) {
      const { beams, x, y } = panels[from[0]];
      const d = `M${x(from[1])} ${y(from[2])}L${x(to[1])} ${y(to[2])}`;
      element("path", { class: `beam ${sign(value)}`, d }, beams);
    }
  }
  const [layer, time, neuron] = trace.spikes[view.chosen];
  const { ring, x, y } = panels[layer];
  ring.setAttribute("cx", x(time));
  ring.setAttribute("cy", y(neuron));
  ring.setAttribute("visibility", "visible");
  for (const space of spaces) draw(space, edges);
}

/** A row of the table of contributions, with a bar to the left or right of the middle. */
function row(table, words, value, scale, spike = null) {
  const line = html("tr", {}, table);
  if (spike === null) line.className = "rest";
  else {
    line.dataset.spike = spike;
    line.tabIndex = 0;
    line.className = sign(value);
  }
  html("th", { scope: "row" }, line, words);
  html("td", { class: "number" }, line, (value > 0 ? "+" : "") + shown(value));
  const bar = html("i", {}, html("span", {}, html("td", { class: "meter" }, line)));
  const width = 50 * Math.min(1, Math.abs(value) / scale);
  bar.style.width = `${width}%`;
  bar.style.left = `${value > 0 ? 50 : 50 - width}%`;
}

function explain() {
  const place = document.getElementById("chosen");
  if (!place || view.chosen === null) return;
  place.replaceChildren();
  const causes = trace.causes[view.chosen];
  html("h3", {}, place, label(view.chosen));
  if (!causes) {
    html("p", { class: "note" }, place, "An input of the model; it has no causes here.");
    return;
  }
  const box = html("div", { class: "box" }, place);
  const table = html("table", { class: "parts" }, box);
  const body = html("tbody", {}, table);
  const rest = [
    ["other spikes", causes.others],
    ["external drive", causes.external],
    ["own resets", causes.resets],
    ["initial state", causes.initial],
  ].filter(([, value]) => Math.abs(value) > 1e-6 * causes.magnitude); // smaller ones are rounding
  const listed = causes.spikes.length ? causes.spikes : rest;
  const scale = Math.max(...listed.map(([, value]) => Math.abs(value)), 1e-30);
  for (const [cause, value] of causes.spikes) row(body, label(cause), value, scale, cause);
  for (const [words, value] of rest) row(body, words, value, scale);
  const foot = html("tr", {}, html("tfoot", {}, table));
  html("th", { scope: "row" }, foot, "voltage before the reset");
  html("td", { class: "number" }, foot, shown(causes.voltage));
  html("td", { class: "meter" }, foot);
  const loss = causes.loss === undefined ? "" : ` The derivative of the loss is ${shown(causes.loss)}.`;
  html("p", { class: "note" }, place, `The threshold is ${shown(causes.threshold)}.${loss}`);
}

function choose(spike) {
  view.chosen = spike;
  paint();
  explain();
}

/** Projection of a position: the first two axes, or three axes turned by two angles. */
function project(position) {
  if (position.length < 3) return [position[0], position[1] ?? 0, 0];
  const [a, b] = view.turn;
  const x = position[0] * Math.cos(a) + position[1] * Math.sin(a);
  const depth = -position[0] * Math.sin(a) + position[1] * Math.cos(a);
  return [x, position[2] * Math.cos(b) + depth * Math.sin(b), depth * Math.cos(b) - position[2] * Math.sin(b)];
}

function space(layer, index) {
  const figure = html("figure", {}, document.querySelector(".spaces"));
  caption(figure, layer);
  const svg = element("svg", { class: "space", viewBox: "0 0 480 400", role: "img" }, figure);
  svg.setAttribute("aria-label", `Positions of the neurons of ${layer.name}`);
  const center = layer.positions[0].map((_, axis) =>
    layer.positions.reduce((sum, each) => sum + each[axis], 0) / layer.positions.length);
  const centered = layer.positions.map((each) => each.map((value, axis) => value - center[axis]));
  const radius = Math.max(...centered.map((each) => Math.hypot(...each)), 1e-9);
  const made = { svg, index, centered, radius };
  if (layer.positions[0].length > 2) {
    let start = null;
    svg.addEventListener("pointerdown", (event) => {
      start = [event.clientX, event.clientY, ...view.turn];
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", (event) => {
      if (!start) return;
      view.turn = [start[2] + (event.clientX - start[0]) / 120, start[3] + (event.clientY - start[1]) / 120];
      paint();
    });
    svg.addEventListener("pointerup", () => { start = null; });
  }
  return made;
}

function draw({ svg, index, centered, radius }, edges) {
  svg.replaceChildren();
  const places = centered.map((each) => {
    const [x, y, depth] = project(each);
    return [240 + (x / radius) * 180, 200 - (y / radius) * 180, depth / radius];
  });
  const lines = element("g", {}, svg);
  const lit = new Map();
  const scale = Math.max(...edges.map(([, , value]) => Math.abs(value)), 1e-30);
  for (const [cause, effect, value] of edges.toReversed()) {
    const [from, to] = [trace.spikes[cause], trace.spikes[effect]];
    if (from[0] === index) lit.set(from[2], sign(value));
    if (from[0] !== index || to[0] !== index) continue;
    const [[x1, y1], [x2, y2]] = [places[from[2]], places[to[2]]];
    const width = 1 + 4 * Math.abs(value) / scale;
    element("line", { class: `synapse ${sign(value)}`, x1, y1, x2, y2, "stroke-width": width }, lines);
  }
  const chosen = trace.spikes[view.chosen];
  const order = places.map((_, at) => at).sort((a, b) => places[b][2] - places[a][2]);
  for (const neuron of order) {
    const [cx, cy, depth] = places[neuron];
    const is = chosen[0] === index && chosen[2] === neuron ? "chosen" : lit.has(neuron) ? `lit ${lit.get(neuron)}` : "";
    const r = (is ? 6.5 : 4) * (1 - 0.25 * depth);
    const dot = element("circle", { class: `neuron ${is}`, cx, cy, r }, svg);
    dot.style.opacity = is ? 1 : 0.9 - 0.35 * Math.max(0, depth);
    element("title", {}, dot, `neuron ${neuron}`);
    if (is === "chosen") element("text", { class: "tag", x: cx + 10, y: cy + 4 }, svg, `neuron ${neuron}`);
  }
}

const spaces = [];
trace.layers.forEach((layer, index) => {
  if (layer.positions && layer.positions.length) spaces.push(space(layer, index));
});

for (const { svg } of panels) {
  svg.addEventListener("click", (event) => {
    const spike = nearest(Number(svg.dataset.layer), event);
    if (spike !== null) choose(spike);
  });
}

/** Moves to the next spike in time, or to the nearest spike of the next neuron. */
const moves = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
rasters.addEventListener("keydown", (event) => {
  const move = moves[event.key];
  if (!move || view.chosen === null) return;
  event.preventDefault();
  const [layer, time, neuron] = trace.spikes[view.chosen];
  let best = null, cost = Infinity;
  trace.spikes.forEach(([at, t, n], spike) => {
    const ahead = move[0] ? (t - time) * move[0] : (n - neuron) * move[1];
    if (at !== layer || ahead <= 0) return;
    const away = move[0] ? 1000 * Math.abs(n - neuron) + ahead : 1000 * ahead + Math.abs(t - time);
    if (away < cost) [best, cost] = [spike, away];
  });
  if (best !== null) choose(best);
});

function follow(event) {
  const line = event.target.closest("tr[data-spike]");
  if (!line || (event.type === "keydown" && event.key !== "Enter")) return;
  choose(Number(line.dataset.spike));
}

for (const name of ["chosen", "ranking"]) {
  const place = document.getElementById(name);
  place?.addEventListener("click", follow);
  place?.addEventListener("keydown", follow);
}
for (const name of ["depth", "color"]) {
  for (const input of document.querySelectorAll(`input[name=${name}]`)) {
    input.addEventListener("change", () => {
      view[name] = name === "depth" ? Number(input.value) : input.value;
      paint();
    });
  }
}

const ranking = document.getElementById("ranking");
if (ranking) {
  const ranked = trace.causes.map((each, at) => [at, each?.loss ?? null])
    .filter(([, value]) => value !== null)
    .sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, 15);
  const table = html("table", { class: "parts" }, html("div", { class: "box" }, ranking));
  const body = html("tbody", {}, table);
  const scale = Math.max(...ranked.map(([, value]) => Math.abs(value)), 1e-30);
  for (const [at, value] of ranked) row(body, label(at), value, scale, at);
}

/** The first choice: the last spike that has a cause, of a layer with positions if there is one. */
const placed = (at) => trace.layers[trace.spikes[at][0]].positions;
const kinds = [
  (each, at) => each && each.spikes.length && placed(at),
  (each) => each && each.spikes.length,
  (each) => each,
];
const first = kinds.map((kind) => trace.causes.findLastIndex(kind)).find((at) => at >= 0);
if (first !== undefined) choose(first);
})();
