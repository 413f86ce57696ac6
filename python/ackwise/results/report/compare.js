// SPDX-License-Identifier: MIT
// The page of a comparison: losses, overview, one table and five plots for the selected cell.

const doc = data.document;
const plan = doc.plan;
const labels = plan.policies.map((p) => p.label);
const baseline = plan.baseline;
const color = {};
labels.filter((l) => l !== baseline).forEach((l, i) => { color[l] = COLORS[i % COLORS.length]; });
color[baseline] = BASELINE_COLOR;
const reasonColor = {};
data.reasons.filter((r) => r.source !== "wait").forEach((r, i) => { reasonColor[r.label] = REASON_COLORS[i % REASON_COLORS.length]; });
const reasonText = Object.fromEntries(data.reasons.map((r) => [r.label, r.text]));

// One view for each link, workload and group of flows.
const views = [];
doc.tables.forEach((table, t) => {
  const groups = [...new Set(table.cells.map((c) => c.group))];
  for (const group of groups) {
    const rows = [];
    table.cells.forEach((cell, i) => {
      if (cell.group === group) rows.push({ cell, detail: data.details[t][i] });
    });
    const name = `${table.link} / ${table.workload}` + (groups.length > 1 ? ` / ${group}` : "");
    views.push({ table, group, rows, name });
  }
});
const state = { view: 0, policy: Math.max(0, labels.indexOf(baseline)) };

function header() {
  return make("header", {},
    make("p", { class: "kicker" }, "ackwise compare"),
    make("h1", {}, plan.title),
    make("p", { class: "source" }, plan.source.trim()),
    metaList([
      ["command", make("code", {}, data.command)],
      ["ran on", data.origin],
      ["schema", String(doc.schema_version)],
      ["runs", `${plan.runs} per combination`],
      ["baseline", make("code", {}, baseline)],
    ]));
}

function belowSection() {
  const lost = doc.below_baseline;
  const title = `Where goodput is more than ${data.below_percent}% below ${baseline}`;
  const cells = doc.tables.flatMap((table) => table.cells.map((cell) => ({ table, cell })));
  const undecided = cells.filter(({ cell }) => cell.undecided).map(({ table, cell }) =>
    `${cell.policy} on ${table.link} / ${table.workload} (${cell.group})`);
  const open = undecided.length ? make("p", { class: "note" },
    `Undecided, as the interval of the difference contains zero: ${undecided.join(", ")}.`) : null;
  if (!lost.length) {
    return make("section", { class: "callout fine", id: "below" }, make("h2", {}, title),
      make("p", {}, `Nowhere${undecided.length ? " for certain" : ""}.`), open);
  }
  const list = make("ul", { class: "below-list" });
  for (const one of lost) {
    const known = one.samples > 1 ? "" : plan.runs === 1 ? ", in a single run" : `, in ${plan.runs} identical runs`;
    list.append(make("li", {}, make("strong", {}, one.policy),
      ` ${signed(one.goodput_change_percent, 1)}% on ${one.link} / ${one.workload} (${one.group})${known}`));
  }
  return make("section", { class: "callout", id: "below" }, make("h2", {}, title), list, open);
}

// Goodput and ACKs against the baseline for every view at a glance.
function matrixSection() {
  const head = make("tr", {}, make("th", {}, "link / workload"));
  labels.forEach((l) => head.append(make("th", {}, l)));
  const body = make("tbody", {});
  views.forEach((view, v) => {
    const row = make("tr", {}, make("td", {}, view.name));
    const rowOf = (label) => view.rows.find((r) => r.cell.policy === label);
    const base = rowOf(baseline)?.cell;
    labels.forEach((label, p) => {
      if (!rowOf(label)) {
        row.append(make("td", { title: view.table.skipped[label] }, "not run"));
        return;
      }
      const { cell } = rowOf(label);
      const change = cell.goodput_change_percent ? cell.goodput_change_percent.mean : null;
      const acks = base?.metrics.acks.mean ? cell.metrics.acks.mean / base.metrics.acks.mean : null;
      const text = label === baseline ? "baseline" : change === null ? "–" : signed(change, 1) + "%";
      const ratio = make("span", { class: "acks" }, acks === null ? " " : `×${acks.toFixed(2)}`);
      const shade = change === null || label === baseline ? "" : `background:${shadeOf(change)}`;
      row.append(make("td", { style: shade, "data-view": v, "data-policy": p, onclick: () => choose(v, p) }, text, ratio));
    });
    body.append(row);
  });
  return make("section", { id: "overview" }, make("h2", {}, "Overview"),
    make("p", { class: "note" }, `Change of goodput against ${baseline}, and × the number of ACKs relative to ${baseline}. Click a cell for its details below.`),
    make("div", { class: "scroll" }, make("table", { class: "matrix" }, make("thead", {}, head), body)));
}

function shadeOf(percent) {
  const strength = Math.min(1, Math.log1p(Math.abs(percent)) / Math.log1p(40));
  if (Math.abs(percent) < 0.25) return "transparent";
  return percent > 0 ? `rgba(10,122,70,${0.08 + 0.3 * strength})` : `rgba(200,80,0,${0.08 + 0.4 * strength})`;
}

const tableHost = make("div", { class: "scroll", id: "table" });
const cheapest = make("p", {});
const about = make("p", { class: "note" });
const throughput = plotBox("Throughput", "Payload delivered to the application per interval, first run. Click a policy in the legend to hide it.", "plot-throughput", true);
const reasonsBar = plotBox("ACK rate by reason", "Pure ACKs per second while data flowed, by the reason each was sent; mean over the runs.", "plot-reasons");
const rtt = plotBox("Round-trip times", "Share of the sender's RTT samples in each histogram bucket, first run.", "plot-rtt");
const reasonsTime = plotBox("ACKs over time, by reason", "Selected policy, first run.", "plot-reasons-time", true);
const sequence = plotBox("Time-sequence", "Start of the first flow, selected policy: data when the sender sends it, ACKs when the receiver sends them, coloured by reason. Drag to zoom.", "plot-sequence", true, true);
const viewChoice = choice("link / workload", views.map((v) => v.name), (v) => choose(v, state.policy));
const policyChoice = choice("policy (lower two plots)", labels, (p) => choose(state.view, p));

function drawTable(view) {
  const shown = data.metrics.filter((m) => m.shown && view.rows.some((r) => r.cell.metrics[m.key].mean !== null));
  const head = make("tr", {}, make("th", {}, "policy"));
  const meansOf = (m) => view.rows.map((r) => r.cell.metrics[m.key].mean).filter((x) => x !== null);
  const times = timeUnit(shown.filter((m) => m.unit === "ns").map((m) => Math.max(...meansOf(m))));
  const columns = shown.map((m) => {
    const means = meansOf(m);
    const [unit, scale] = m.unit === "ns" ? times : unitOf(m.unit, Math.max(...means));
    const title = m.title.endsWith(unit) && unit ? m.title.slice(0, -unit.length).trim() : m.title;
    head.append(make("th", { title: m.text }, title, make("span", { class: "unit" }, unit || " ")));
    return { m, scale, digits: !m.unit && means.every(Number.isInteger) ? 0 : decimals(means.map((x) => x / scale)) };
  });
  const body = make("tbody", {});
  for (const { cell } of view.rows) {
    const row = make("tr", {}, make("td", { class: "policy" },
      make("span", { class: "swatch", style: `background:${color[cell.policy]}` }), cell.policy,
      cell.below_baseline ? make("span", { class: "below", title: `goodput more than ${data.below_percent}% below ${baseline}` }, " !") : null,
      cell.validated === false ? make("span", { title: "not validated against the kernel on this link" }, " ~") : null));
    for (const { m, scale, digits } of columns) {
      const found = cell.metrics[m.key];
      const range = cell.ranges[m.key];
      const td = make("td", found.best ? { class: "best" } : {});
      if (found.mean === null) td.append("–");
      else {
        td.append(figure(found.mean / scale, digits));
        if (found.ci95) td.append(make("span", { class: "ci" }, range ? `[${range.map((x) => figure(x / scale, digits)).join("–")}]` : halfWidth(found.ci95 / scale, digits)));
      }
      row.append(td);
    }
    body.append(row);
  }
  tableHost.replaceChildren(make("table", {}, make("thead", {}, head), body));
}

function drawThroughput(view) {
  const traces = [];
  for (const { cell, detail } of view.rows) {
    if (!detail || detail.series.t_us.length < 3) continue; // each time is the end of an interval
    const t = detail.series.t_us;
    const step = t[1] - t[0];
    traces.push({
      type: "scatter", mode: "lines", name: plain(cell.policy),
      x: t.slice(1).map((us) => (us - step / 2) / 1e6), y: detail.series.bytes.slice(1).map((b) => (b * 8) / step),
      line: { color: color[cell.policy], width: cell.policy === baseline ? 2.4 : 1.5 },
    });
  }
  draw(throughput.target, traces, { xaxis: axis("time, s"), yaxis: axis("Mbit/s", { rangemode: "tozero" }), hovermode: "x unified" });
}

function drawReasons(view) {
  const used = data.reasons.map((r) => r.label).filter((l) => view.rows.some((r) => r.cell.acks_by_reason[l]));
  const rate = ({ cell }, label) => {
    const seconds = (cell.metrics.delivered_bytes.mean * 8) / cell.metrics.goodput_bps.mean;
    return seconds > 0 ? (cell.acks_by_reason[label] || 0) / seconds : 0;
  };
  const traces = used.map((label) => ({
    type: "bar", orientation: "h", name: plain(label),
    y: view.rows.map((r) => plain(r.cell.policy)), x: view.rows.map((r) => rate(r, label)),
    marker: { color: reasonColor[label] }, hovertemplate: `%{x:.4g} ACKs/s<br>${plain(reasonText[label])}`,
  }));
  draw(reasonsBar.target, traces, { barmode: "stack", xaxis: axis("ACKs per second"), yaxis: axis("", { autorange: "reversed", type: "category" }), legend: { x: 1.02, y: 1, font: { size: 12 } } });
}

function drawRtt(view) {
  const traces = [];
  for (const { cell, detail } of view.rows) {
    if (!detail || !detail.rtt.count.length) continue;
    const total = detail.rtt.count.reduce((a, b) => a + b, 0);
    // Only buckets with samples are listed, each about 6% wide; the gaps between them are zero.
    const x = [];
    const y = [];
    detail.rtt.upper_us.forEach((upper, i) => {
      const lower = upper / 1.06;
      if (!x.length || x[x.length - 1] * 1e3 < lower / 1.03) {
        x.push(lower / 1e3);
        y.push(0);
      }
      x.push(upper / 1e3);
      y.push((100 * detail.rtt.count[i]) / total);
    });
    x.push(x[x.length - 1]);
    y.push(0);
    traces.push({
      type: "scatter", mode: "lines", name: plain(cell.policy), x, y,
      line: { color: color[cell.policy], width: cell.policy === baseline ? 2.4 : 1.5, shape: "vh" },
    });
  }
  draw(rtt.target, traces, { xaxis: axis("round-trip time, ms", { type: "log" }), yaxis: axis("% of samples", { rangemode: "tozero" }) });
}

function drawReasonsTime(row) {
  const traces = [];
  if (row.detail && row.detail.series.t_us.length > 1) {
    const t = row.detail.series.t_us;
    const step = t[1] - t[0];
    for (const { label } of data.reasons) {
      const counts = row.detail.series.acks[label];
      if (!counts) continue;
      traces.push({
        type: "bar", name: plain(label), x: t.slice(0, counts.length).map((us) => (us - step / 2) / 1e6),
        y: counts.map((c) => (c * 1e6) / step), marker: { color: reasonColor[label] }, width: step / 1e6,
      });
    }
  }
  draw(reasonsTime.target, traces, { barmode: "stack", bargap: 0, xaxis: axis("time, s"), yaxis: axis("ACKs per second", { rangemode: "tozero" }) });
}

function drawSequence(row) {
  const traces = [];
  const trace = row.detail && row.detail.trace;
  if (trace) {
    const again = new Set(trace.again);
    const ms = (us) => us / 1e3;
    const kb = (b) => b / 1e3;
    const first = trace.data_us.map((_, i) => i).filter((i) => !again.has(i));
    traces.push({ type: "scatter", mode: "markers", name: "data", x: first.map((i) => ms(trace.data_us[i])), y: first.map((i) => kb(trace.data_end[i])), marker: { color: "var(--soft)", size: 4, symbol: "square" } });
    if (trace.again.length) {
      traces.push({ type: "scatter", mode: "markers", name: "retransmitted data", x: trace.again.map((i) => ms(trace.data_us[i])), y: trace.again.map((i) => kb(trace.data_end[i])), marker: { color: "#b22222", size: 8, symbol: "x" } });
    }
    traces.push({ type: "scatter", mode: "lines", name: "acknowledged", x: trace.ack_us.map(ms), y: trace.ack_seq.map(kb), line: { color: "var(--ink)", width: 1, shape: "hv" }, hoverinfo: "skip" });
    for (const label of [...new Set(trace.ack_reason)]) {
      const at = trace.ack_reason.map((r, i) => (r === label ? i : -1)).filter((i) => i >= 0);
      traces.push({ type: "scatter", mode: "markers", name: `ACK: ${plain(label)}`, x: at.map((i) => ms(trace.ack_us[i])), y: at.map((i) => kb(trace.ack_seq[i])), marker: { color: reasonColor[label] || "var(--ink)", size: 6, symbol: "triangle-up" } });
    }
  }
  draw(sequence.target, traces, { xaxis: axis("time, ms"), yaxis: axis("sequence number, kB") });
}

function choose(v, p) {
  state.view = v;
  state.policy = p;
  const view = views[v];
  const row = view.rows.find((r) => r.cell.policy === labels[p]) || view.rows[0];
  viewChoice.select.value = v;
  policyChoice.select.value = p;
  document.querySelectorAll(".matrix td.chosen").forEach((e) => e.classList.remove("chosen"));
  const cell = document.querySelector(`.matrix td[data-view="${v}"][data-policy="${p}"]`);
  if (cell) cell.classList.add("chosen");
  const link = plan.links.find((l) => l.name === view.table.link);
  const workload = plan.workloads.find((w) => w.name === view.table.workload);
  about.textContent = `${link.title}. ${workload.title}, at most ${workload.duration_ns / 1e9} s. CPU: ${link.device}. Source of the link's values: ${link.source.trim()}`;
  cheapest.replaceChildren("Fewest ACKs within 1% of the best goodput: ", make("strong", {}, view.table.cheapest[view.group]));
  drawTable(view);
  drawThroughput(view);
  drawReasons(view);
  drawRtt(view);
  drawReasonsTime(row);
  drawSequence(row);
  sequence.box.querySelector("h3").textContent = `Time-sequence: ${row.cell.policy}`;
  reasonsTime.box.querySelector("h3").textContent = `ACKs over time, by reason: ${row.cell.policy}`;
  document.body.dataset.drawn = `${v},${p}`;
}

function skippedSection() {
  const list = make("ul", {});
  for (const { link, workload, skipped } of doc.tables) {
    for (const reason of new Set(Object.values(skipped))) {
      const which = Object.keys(skipped).filter((label) => skipped[label] === reason);
      list.append(make("li", {}, make("strong", {}, `${link} / ${workload}`),
        ` (${which.length === labels.length ? "every policy" : which.join(", ")}): ${reason}`));
    }
  }
  return list.childElementCount ? make("section", { id: "skipped" }, make("h2", {}, "Not run"), list) : null;
}

function policiesSection() {
  const body = make("tbody", {});
  plan.policies.forEach((p, i) => {
    const params = Object.entries(p.params).map(([k, v]) => `${k}=${v}`).join(", ");
    body.append(make("tr", {}, make("td", { class: "policy" }, p.label), make("td", { class: "left", style: "white-space:normal" }, data.policies[i].summary),
      make("td", { class: "left", style: "white-space:normal" }, params || "none"), make("td", { class: "left", style: "white-space:normal" }, data.policies[i].source)));
  });
  const head = make("tr", {}, ...["policy", "description", "parameters", "reference"].map((t) => make("th", { class: "left" }, t)));
  return make("section", {}, make("h2", {}, "Policies"), make("div", { class: "scroll" }, make("table", {}, make("thead", {}, head), body)));
}

main.append(
  header(),
  belowSection(),
  ...(views.length > 1 ? [matrixSection()] : []),
  make("section", { id: "cell" },
    make("div", { class: "controls" }, ...(views.length > 1 ? [viewChoice.element] : []), policyChoice.element),
    about, tableHost, cheapest,
    make("p", { class: "note" }, "Green: best value of its column. ~: not validated against the kernel on this link. ±: half width of the 95% confidence interval; [least–most] of the runs where that would reach below zero. Hover over a column heading for its meaning."),
    make("div", { class: "plots" }, throughput.box, reasonsBar.box, rtt.box, reasonsTime.box, sequence.box)),
  ...[skippedSection()].filter(Boolean),
  policiesSection(),
  make("footer", {}, "This page is self-contained and makes no network requests."));
choose(0, state.policy);
