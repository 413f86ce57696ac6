// SPDX-License-Identifier: MIT
// Shared by both pages: elements, figures with units, plots.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const main = document.getElementById("main");

// Text is inserted as text, never as markup: titles come from files that anyone may have written.
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "style") element.style.cssText = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  for (const child of children) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}

const SCALES = {
  "bit/s": [["Gbit/s", 1e9], ["Mbit/s", 1e6], ["kbit/s", 1e3], ["bit/s", 1]],
  B: [["GB", 1e9], ["MB", 1e6], ["kB", 1e3], ["B", 1]],
};

// The unit for a column with the maximum `largest`, and its size.
function unitOf(unit, largest) {
  const scales = SCALES[unit];
  if (!scales) return [unit, 1];
  return scales.find(([, scale]) => largest >= scale) || scales[scales.length - 1];
}

// The unit for all times of a table, by the rule of the text tables; `largest`: maximum of each column.
function timeUnit(largest) {
  const smallest = Math.min(...largest.filter((v) => v > 0));
  const units = [["ms", 1e6], ["µs", 1e3], ["ns", 1]];
  return units.find(([, scale]) => smallest >= 0.01 * scale) || units[0];
}

// Number of decimals of a column, by the rule of the text tables.
function decimals(values) {
  const sizes = values.map(Math.abs).filter((v) => v > 0);
  if (!sizes.length) return 0;
  const order = (v) => Math.floor(Math.log10(v));
  const digits = Math.max(3 - order(Math.max(...sizes)), 1 - order(Math.min(...sizes)));
  return Math.min(3, Math.max(0, digits));
}

function figure(value, digits) {
  const [whole, fraction] = value.toFixed(digits).split(".");
  return whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") + (fraction ? `.${fraction}` : "");
}

// Half width of an interval; never shown as zero, which only a single sample could claim.
function halfWidth(value, digits) {
  const text = value.toFixed(digits);
  return Number(text) ? `±${figure(value, digits)}` : `±<${figure(10 ** -digits, digits)}`;
}

function signed(value, digits) {
  const text = value.toFixed(digits);
  if (Number(text) === 0) return (0).toFixed(digits); // no "-0.0"
  return (value > 0 ? "+" : "") + text;
}

// Plotly interprets some markup in legends and hover texts; names must be shown as they are.
const plain = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

// Distinguishable with any colour vision; the baseline is dark.
const COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#b58900", "#7f3fbf",
  "#8c564b", "#3f7f00", "#e31a73", "#008b8b", "#a0522d", "#5f6caf", "#b22222"];
// One per reason: too many to distinguish all, so neighbours in the list differ most.
const REASON_COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e6b800", "#7f3fbf", "#8c564b",
  "#3f7f00", "#e31a73", "#00a3a3", "#ff9966", "#5f6caf", "#b22222", "#9acd32", "#2f4f4f", "#c71585", "#b8860b",
  "#4169e1", "#f08080", "#556b2f", "#9370db", "#20b2aa", "#a9a9a9", "#ff7f0e", "#1f3b73"];
const BASELINE_COLOR = "var(--ink)";

const LAYOUT = {
  font: { family: 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif', size: 12.5, color: "var(--ink)" },
  margin: { l: 64, r: 16, t: 30, b: 48 },
  paper_bgcolor: "var(--paper)",
  plot_bgcolor: "var(--paper)",
  legend: { orientation: "h", y: -0.2, yanchor: "top", font: { size: 12 } },
  hoverlabel: { namelength: -1, bgcolor: "var(--wash)", bordercolor: "var(--axis)", font: { color: "var(--ink)" } },
};
const AXIS = { gridcolor: "var(--grid)", zerolinecolor: "var(--axis)", linecolor: "var(--axis)", ticks: "outside", tickcolor: "var(--axis)", automargin: true };
const CONFIG = { responsive: true, displaylogo: false, displayModeBar: "hover", modeBarButtonsToRemove: ["select2d", "lasso2d"],
  toImageButtonOptions: { format: "svg" } }; // the camera: a figure for a paper

function axis(title, more) {
  return Object.assign({}, AXIS, { title: { text: title, standoff: 8 } }, more);
}

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// `value` with the colours of page.css in place of "var(--NAME)", which Plotly does not read.
function painted(value) {
  if (typeof value === "string") return value.replace(/^var\((--[a-z-]+)\)$/, (_, name) => css(name));
  if (Array.isArray(value)) return ["object", "string"].includes(typeof value[0]) ? value.map(painted) : value;
  if (value === null || typeof value !== "object" || ArrayBuffer.isView(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, key === "customdata" ? part : painted(part)]));
}

const drawn = new Map(); // what draw() was given, by its target

// Draws the traces, or a note if there are none; `target` records their number for tests.
function draw(target, traces, layout) {
  target.dataset.traces = String(traces.length);
  if (!traces.length) {
    drawn.delete(target);
    Plotly.purge(target);
    target.replaceChildren(make("p", { class: "empty" }, "Nothing was recorded for this selection."));
    return;
  }
  target.querySelectorAll(".empty").forEach((e) => e.remove());
  drawn.set(target, [traces, layout]);
  Plotly.react(target, painted(traces), painted({ ...LAYOUT, ...layout }), CONFIG);
}

// The system's scheme of colours changes, or the page is printed, which is light.
for (const media of ["(prefers-color-scheme: dark)", "print"]) {
  matchMedia(media).addEventListener("change", () => drawn.forEach(([traces, layout], target) => {
    draw(target, traces, layout);
    Plotly.Plots.resize(target);
  }));
}

function choice(label, options, onchange) {
  const select = make("select", { onchange: () => onchange(Number(select.value)), "aria-label": label });
  options.forEach((text, i) => select.append(make("option", { value: i }, text)));
  return { element: make("label", {}, label, select), select };
}

function metaList(entries) {
  const list = make("dl", { class: "meta" });
  for (const [term, value] of entries) {
    list.append(make("dt", {}, term), make("dd", {}, value));
  }
  return list;
}

function plotBox(title, note, id, wide, tall) {
  const target = make("div", { class: tall ? "plot tall" : "plot", id });
  const box = make("div", { class: wide ? "wide" : "" }, make("h3", {}, title), make("p", { class: "note" }, note), target);
  return { box, target };
}
