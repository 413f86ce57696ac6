// SPDX-License-Identifier: MIT
// The page of a capture: the ACKs that every policy would have sent for its arrivals.

const doc = data.document;
const captured = data.captured;
const reasonColor = {};
data.reasons.filter((r) => r.source !== "wait").forEach((r, i) => { reasonColor[r.label] = REASON_COLORS[i % REASON_COLORS.length]; });
const reasonText = Object.fromEntries(data.reasons.map((r) => [r.label, r.text]));
const state = { view: 0, policy: 0 };
const names = doc.directions.map((d) => `${d.from} → ${d.to}, ${(d.payload_bytes / 1e6).toFixed(2)} MB`);
const labels = [...new Set(doc.directions.flatMap((d) => d.cells.map((c) => c.policy)))];
const color = {};
labels.filter((l) => l !== captured).forEach((l, i) => { color[l] = COLORS[i % COLORS.length]; });
color[captured] = BASELINE_COLOR;

const COLUMNS = [
  ["acks", "ACKs", "", "pure ACKs"],
  ["acks_piggybacked", "piggybacked", "", "ACKs piggybacked on the receiver's data"],
  ["segments_per_ack", "segs/ACK", "", "data segments per ACK, pure or piggybacked"],
  ["ack_latency_mean_ns", "ACK lat. mean", "ns", "from a segment's arrival to the ACK that covers it"],
  ["ack_latency_p50_ns", "ACK lat. p50", "ns", "half of the segments wait at most this"],
  ["ack_latency_p95_ns", "ACK lat. p95", "ns", "95% of the segments wait at most this"],
  ["ack_latency_p99_ns", "ACK lat. p99", "ns", "99% of the segments wait at most this"],
  ["cost", "cost", "", "rho * ACKs + (1 - rho) * latency / unit"],
  ["cost_ratio", "× optimum", "", "cost divided by that of the best possible schedule in hindsight"],
  ["cpu_s_per_gb", "CPU", "s/GB", "processor seconds of the receiver per 10^9 bytes"],
];

const tableHost = make("div", { class: "scroll", id: "table" });
const about = make("p", { class: "note" });
const cheapest = make("p", {});
const ratio = plotBox("Ratio to the optimum", "Cost divided by that of the best possible schedule in hindsight (all arrivals known); 1 cannot be beaten.", "plot-ratio");
const latency = plotBox("ACK latency", "From a segment's arrival to the ACK that covers it.", "plot-latency");
const reasonsBar = plotBox("ACKs by reason", "Why a policy sends each ACK; a capture does not show the reasons of its own receiver.", "plot-reasons", true);
const reasonsTime = plotBox("ACK rate by reason", "Selected policy.", "plot-reasons-time", true);
const sequence = plotBox("Time-sequence", "Start of the transfer: ACKs of the selected policy and of the captured receiver. Drag to zoom.", "plot-sequence", true, true);
const viewChoice = choice("direction", names, (v) => choose(v, 0));
const policyChoice = choice("policy (lower two plots)", labels, (p) => choose(state.view, p));

function drawTable(one) {
  const head = make("tr", {}, make("th", {}, "policy"));
  const columns = [];
  const valuesOf = (key) => one.cells.map((c) => c[key]).filter((v) => v !== null);
  const times = timeUnit(COLUMNS.filter(([, , unit]) => unit === "ns").map(([key]) => Math.max(...valuesOf(key))));
  for (const [key, title, unit, text] of COLUMNS) {
    const values = valuesOf(key);
    if (!values.length) continue;
    const [name, scale] = unit === "ns" ? times : unitOf(unit, Math.max(...values));
    columns.push({ key, scale, digits: !unit && values.every(Number.isInteger) ? 0 : decimals(values.map((x) => x / scale)) });
    head.append(make("th", { title: text }, title, make("span", { class: "unit" }, name || " ")));
  }
  const body = make("tbody", {});
  for (const cell of one.cells) {
    const row = make("tr", {}, make("td", { class: "policy" }, make("span", { class: "swatch", style: `background:${color[cell.policy]}` }), cell.policy));
    for (const { key, scale, digits } of columns) {
      const value = cell[key];
      row.append(make("td", cell.best.includes(key) ? { class: "best" } : {}, value === null ? "–" : figure(value / scale, digits)));
    }
    body.append(row);
  }
  tableHost.replaceChildren(make("table", {}, make("thead", {}, head), body));
}

const byPolicy = (one) => one.cells.map((c) => plain(c.policy));
// A logarithmic axis if policies are far apart.
function spread(title, values) {
  const sizes = values.filter((v) => v > 0);
  const far = sizes.length && Math.max(...sizes) > 30 * Math.min(...sizes);
  return axis(title, far ? { type: "log" } : { rangemode: "tozero" });
}

const reversed = { autorange: "reversed", type: "category" };

function drawRatio(one) {
  const cells = one.cells.filter((c) => c.cost_ratio !== null);
  const traces = cells.length ? [{
    type: "bar", orientation: "h", y: cells.map((c) => plain(c.policy)), x: cells.map((c) => c.cost_ratio),
    marker: { color: cells.map((c) => color[c.policy]) }, text: cells.map((c) => c.cost_ratio.toFixed(2)), hovertemplate: "%{x:.3f}<extra></extra>",
  }] : [];
  draw(ratio.target, traces, { showlegend: false, xaxis: spread("cost / optimum", cells.map((c) => c.cost_ratio)), yaxis: axis("", reversed),
    shapes: [{ type: "line", x0: 1, x1: 1, yref: "paper", y0: 0, y1: 1, line: { color: "var(--best)", dash: "dot", width: 1.5 } }] });
}

function drawLatency(one) {
  const traces = [["p50", "#9ecae1"], ["p95", "#4292c6"], ["p99", "#2171b5"]].map(([q, shade]) => ({
    type: "bar", orientation: "h", name: q, y: byPolicy(one), x: one.cells.map((c) => c[`ack_latency_${q}_ns`] / 1e6), marker: { color: shade },
  }));
  draw(latency.target, traces, { barmode: "group", xaxis: spread("ms", traces.flatMap((t) => t.x)), yaxis: axis("", reversed) });
}

function drawReasons(one) {
  const known = data.reasons.map((r) => r.label);
  const seen = [...new Set(one.cells.flatMap((c) => Object.keys(c.acks_by_reason)))];
  const used = [...known.filter((l) => seen.includes(l)), ...seen.filter((l) => !known.includes(l))];
  const traces = used.map((label) => ({
    type: "bar", orientation: "h", name: plain(label), y: byPolicy(one), x: one.cells.map((c) => c.acks_by_reason[label] || 0),
    marker: { color: reasonColor[label] || BASELINE_COLOR }, hovertemplate: `%{x} ACKs<br>${plain(reasonText[label] || "unknown: not visible in a capture")}`,
  }));
  draw(reasonsBar.target, traces, { barmode: "stack", xaxis: axis("ACKs"), yaxis: axis("", reversed), legend: { x: 1.02, y: 1, font: { size: 12 } } });
}

function drawReasonsTime(detail) {
  const traces = !detail ? [] : Object.entries(detail.rate).map(([label, counts]) => ({
    type: "bar", name: plain(label), x: counts.map((_, i) => ((i + 0.5) * detail.step_us) / 1e6), y: counts.map((c) => (c * 1e6) / detail.step_us),
    width: detail.step_us / 1e6, marker: { color: reasonColor[label] || BASELINE_COLOR },
  }));
  draw(reasonsTime.target, traces, { barmode: "stack", bargap: 0, xaxis: axis("time, s"), yaxis: axis("ACKs per second", { rangemode: "tozero" }) });
}

function drawSequence(detail, real) {
  const traces = [];
  const at = (d, keep) => ({ x: d.t_us.filter(keep).map((us) => us / 1e3), y: d.ack.filter(keep).map((b) => b / 1e3) });
  const all = () => true;
  if (real) traces.push({ type: "scatter", mode: "lines", name: "captured receiver", ...at(real, all), line: { color: "var(--soft)", width: 1.2, shape: "hv" } });
  if (detail && detail !== real) {
    traces.push({ type: "scatter", mode: "lines", name: "selected policy", ...at(detail, all), line: { color: "var(--ink)", width: 1, shape: "hv" }, hoverinfo: "skip" });
    for (const label of [...new Set(detail.reason)]) {
      traces.push({ type: "scatter", mode: "markers", name: `ACK: ${plain(label)}`, ...at(detail, (_, i) => detail.reason[i] === label), marker: { color: reasonColor[label] || BASELINE_COLOR, size: 6, symbol: "triangle-up" } });
    }
  }
  draw(sequence.target, traces, { xaxis: axis("time, ms"), yaxis: axis("acknowledged, kB") });
}

function choose(v, p) {
  state.view = v;
  state.policy = p;
  viewChoice.select.value = v;
  policyChoice.select.value = p;
  const one = doc.directions[v];
  const cell = one.cells.findIndex((c) => c.policy === labels[p]);
  const detail = cell < 0 ? null : data.details[v][cell];
  const real = one.cells.findIndex((c) => c.policy === captured);
  const remarks = [`${one.data_segments} segments of at most ${one.mss_bytes} bytes over ${((one.end_ns - one.start_ns) / 1e9).toFixed(3)} s. Best possible in hindsight: ${one.optimum.acks} ACKs, cost ${one.optimum.cost.toFixed(1)}.`];
  for (const note of one.notes) remarks.push(`${note[0].toUpperCase()}${note.slice(1)}.`);
  if (doc.truncated) remarks.push(`The file ends inside packet ${doc.truncated.packet}, at byte ${doc.truncated.offset}; the packets before it are analysed.`);
  about.textContent = remarks.join(" ");
  cheapest.replaceChildren("Lowest cost: ", make("strong", {}, one.cheapest || "none"));
  drawTable(one);
  drawRatio(one);
  drawLatency(one);
  drawReasons(one);
  drawReasonsTime(detail);
  drawSequence(detail, real < 0 ? null : data.details[v][real]);
  sequence.box.querySelector("h3").textContent = `Time-sequence: ${labels[p]}`;
  reasonsTime.box.querySelector("h3").textContent = `ACK rate by reason: ${labels[p]}`;
  document.body.dataset.drawn = `${v},${p}`;
}

main.append(
  make("header", {},
    make("p", { class: "kicker" }, "ackwise replay"),
    make("h1", {}, doc.capture),
    make("p", { class: "source" }, `ACK counts and latencies are exact for these arrivals; ${data.limits}.`),
    metaList([
      ["command", make("code", {}, data.command)],
      ["ran on", data.origin],
      ["schema", String(doc.schema_version)],
      ["price", `one ACK costs ${doc.price.rho_permille / 1000}; ${doc.price.unit_ns / 1e6} ms of latency of one segment costs ${(1000 - doc.price.rho_permille) / 1000}`],
      ["directions", `${doc.directions.length} shown${data.more > 0 ? `, ${data.more} with less data in --json` : ""}${doc.directions_left_out.directions ? `, ${doc.directions_left_out.directions} with still less data left out` : ""}${doc.directions_skipped ? `, ${doc.directions_skipped} with too little data` : ""}`],
    ])),
  make("section", { id: "cell" },
    make("div", { class: "controls" }, ...(names.length > 1 ? [viewChoice.element] : [make("h2", {}, names[0])]), policyChoice.element),
    about, tableHost, cheapest,
    make("p", { class: "note" }, "Green: best value of its column. Hover over a column heading for its meaning."),
    make("div", { class: "plots" }, ratio.box, latency.box, reasonsBar.box, reasonsTime.box, sequence.box)),
  make("footer", {}, "This page is self-contained and makes no network requests."));
choose(0, Math.min(labels.indexOf("linux") < 0 ? 0 : labels.indexOf("linux"), labels.length - 1));
