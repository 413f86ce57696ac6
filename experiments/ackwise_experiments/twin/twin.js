// SPDX-License-Identifier: MIT
// The page of a plan in both worlds: figures, where they diverge, both time sequences, both windows.

const doc = data.document;
const WORLD = {
  simulator: { title: "simulator", color: "#0072b2", data: "square", ack: "triangle-up", size: 5 },
  linux: { title: "kernel", color: "#d55e00", data: "square-open", ack: "triangle-down-open", size: 9 }, // around the other's
};
const reasonColor = {};
data.reasons.filter((r) => r.source !== "wait").forEach((r, i) => { reasonColor[r.label] = REASON_COLORS[i % REASON_COLORS.length]; });
const views = [];
doc.tables.forEach((table) => {
  const groups = new Set(table.cells.map((c) => c.group));
  for (const cell of table.cells) {
    const flows = groups.size > 1 ? ` / ${cell.group}` : "";
    views.push({ name: `${table.link} / ${table.workload}${flows} / ${cell.policy}`, text: data.texts[views.length], drawn: data.drawn[views.length] });
  }
});

function header() {
  const origins = make("div", {});
  for (const line of new Set(Object.values(data.origins))) origins.append(make("div", {}, line));
  return make("header", {},
    make("p", { class: "kicker" }, "ackwise twin"),
    make("h1", {}, doc.plan.title),
    make("p", { class: "source" }, doc.plan.source.trim()),
    metaList([
      ["command", make("code", {}, data.command)],
      ["ran on", origins],
      ["schema", String(doc.schema_version)],
      ["runs", `${doc.plan.runs} in each world, and as many on the kernel with other seeds`],
      ["tolerance", `${doc.tolerance_ns / 1e3} µs`],
    ]));
}

const figures = make("div", { class: "scroll", id: "table" });
const story = make("div", { id: "divergence" });
const near = plotBox("Where they diverge", "Packets of the first flow around the first divergence (dotted line), as each end sent them. Time counts from the flow's first data.", "plot-near", true, true);
const whole = plotBox("Time sequence", "The whole flow; of long ones every n-th packet, and all that were lost or sent again. ACKs of the simulator are coloured by reason; the kernel's captures do not tell theirs. Drag to zoom.", "plot-whole", true, true);
const cwnd = plotBox("Congestion window", "Of the first flow's sender; the kernel's from samples of tcp_info.", "plot-cwnd", true);

function drawFigures(text) {
  const head = make("tr", {}, ...["measure", "simulator", "kernel", "kernel, other seeds", "difference", "yardstick"].map((t) => make("th", {}, t)));
  const body = make("tbody", {});
  for (const [title, unit, simulator, linux, again, difference, yardstick] of text.rows) {
    body.append(make("tr", {}, make("td", {}, `${title}${unit ? ` ${unit}` : ""}`),
      ...[simulator, linux, again, difference, yardstick].map((t) => make("td", {}, t))));
  }
  figures.replaceChildren(make("table", {}, make("thead", {}, head), body));
  story.replaceChildren(...text.story.map((line) => make("p", {}, line.trim())));
}

// Divergences up to a time: one that the plot does not reach would stand in an empty area.
const lines = ({ divergences }, most_us = Infinity) => {
  const shown = divergences.filter((p) => p.us <= most_us);
  return {
    shapes: shown.map((p) => ({ type: "line", xref: "x", yref: "paper", x0: p.us / 1e3, x1: p.us / 1e3, y0: 0, y1: 1, line: { color: "var(--soft)", width: 1, dash: "dot" } })),
    annotations: shown.map((p, i) => ({ xref: "x", yref: "paper", x: p.us / 1e3, y: 1, text: p.how, showarrow: false, xanchor: i ? "left" : "right", yanchor: "bottom" })),
  };
};

function markers(name, symbol, x, y, which, style) {
  return { type: "scatter", mode: "markers", name, x: which.map((i) => x[i]), y: which.map((i) => y[i]), marker: { symbol, ...style } };
}

function sequence(worlds) {
  const traces = [];
  for (const [key, { title, color, data: square, ack, size: sparse }] of Object.entries(WORLD)) {
    const p = worlds[key];
    const size = p.data_us.length > 400 ? sparse / 2 : sparse; // a band shows nothing
    const t = p.data_us.map((us) => us / 1e3);
    const end = p.data_end.map((b) => b / 1e3);
    const at = p.ack_us.map((us) => us / 1e3);
    const number = p.ack.map((b) => b / 1e3);
    const again = new Set(p.again);
    traces.push(markers(`${title}: data`, square, t, end, t.map((_, i) => i).filter((i) => !again.has(i)), { color, size }));
    if (again.size) traces.push(markers(`${title}: sent again`, "x", t, end, p.again, { color, size: 8 }));
    if (p.data_lost.length) traces.push(markers(`${title}: lost`, "circle-open", t, end, p.data_lost, { color, size: 12, line: { width: 2 } }));
    traces.push({ type: "scatter", mode: "lines", name: `${title}: acknowledged`, x: at, y: number, line: { color, width: 1, shape: "hv" }, hoverinfo: "skip" });
    for (const label of new Set(p.reason)) {
      const which = at.map((_, i) => i).filter((i) => p.reason[i] === label);
      traces.push(markers(`${title}: ACK${label ? `, ${plain(label)}` : ""}`, ack, at, number, which, { color: reasonColor[label] || color, size: size + 2 }));
    }
    if (p.ack_lost.length) traces.push(markers(`${title}: ACK lost`, "circle-open", at, number, p.ack_lost, { color, size: 12, line: { width: 1 } }));
  }
  return traces;
}

const last = (worlds) => Math.max(...Object.values(worlds).flatMap((p) => [...p.data_us.slice(-1), ...p.ack_us.slice(-1)]));

function choose(v) {
  const { text, drawn } = views[v];
  drawFigures(text);
  const axes = { xaxis: axis("time since the first data, ms"), yaxis: axis("sequence number, kB") };
  if (!drawn) {
    for (const plot of [near, whole, cwnd]) draw(plot.target, [], {});
    return;
  }
  draw(near.target, sequence(drawn.near), { ...axes, ...lines(drawn, last(drawn.near)) });
  draw(whole.target, sequence(drawn.whole), { ...axes, ...lines(drawn) });
  draw(cwnd.target, Object.entries(WORLD).filter(([key]) => drawn.cwnd[key].us.length).map(([key, { title, color }]) => ({
    type: "scatter", mode: "lines", name: title, line: { color, width: 1.6, shape: "hv" },
    x: drawn.cwnd[key].us.map((us) => us / 1e3), y: drawn.cwnd[key].bytes.map((b) => b / 1e3),
  })), { xaxis: axes.xaxis, yaxis: axis("congestion window, kB", { rangemode: "tozero" }), ...lines(drawn) });
}

const viewChoice = choice("link / workload / policy", views.map((v) => v.name), choose);
const skipped = make("ul", {});
for (const table of doc.tables) {
  for (const [policy, why] of Object.entries(table.skipped)) skipped.append(make("li", {}, `${table.link} / ${table.workload} / ${policy}: ${why}`));
}
main.append(header(),
  make("section", {}, make("div", { class: "controls" }, viewChoice.element), figures,
    make("p", { class: "note" }, "Difference: how far the simulator lies above the kernel. Yardstick: how far the kernel with other seeds does.")),
  make("section", {}, make("h2", {}, "Where the first flow's runs diverge"), story),
  make("section", {}, make("div", { class: "plots" }, near.box, whole.box, cwnd.box)));
if (skipped.childElementCount) main.append(make("section", { id: "skipped" }, make("h2", {}, "Not run"), skipped));
if (views.length) choose(0);
