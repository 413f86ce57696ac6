// SPDX-License-Identifier: MIT
// The page of a diagnosis: transfers by lost time, and graphs of the chosen one that zoom together.

const ROWS = 100; // rows of the list shown at a time
const limitNames = Object.keys(data.limits);
const list = data.list;
const state = { transfer: 0, whole: [0, 1], view: [0, 1], series: null, spans: null, rows: ROWS };

const bytes = (n) => { const [unit, scale] = unitOf("B", n); return `${figure(n / scale, scale > 1 ? 2 : 0)} ${unit}`; };
const rate = (bps) => { const [unit, scale] = unitOf("bit/s", bps); return `${figure(bps / scale, scale > 1 ? 2 : 0)} ${unit}`; };
function duration(us) {
  if (us >= 1e6) return `${figure(us / 1e6, 3)} s`;
  return us >= 1e3 ? `${figure(us / 1e3, 2)} ms` : `${figure(us, 0)} µs`;
}
const swatch = (color) => make("span", { class: "swatch", style: `background:${color}` });
const said = (name) => data.limits[name] || { words: name, meaning: "", color: "#888888" };

// --- the list -----------------------------------------------------------------------------------

const search = make("input", { id: "search", type: "search", placeholder: "address, port or limit", "aria-label": "Search transfers by address, port or limit", oninput: () => { state.rows = ROWS; fillList(); } });
const listBody = make("tbody", {});
const listNote = make("p", { class: "note", id: "found", "aria-live": "polite" });
const more = make("button", { id: "more", type: "button", onclick: () => { state.rows += 5 * ROWS; fillList(); } }, "Show more");

function matches(words, n) {
  const text = `${list.sender[n]} ${list.receiver[n]} ${said(limitNames[list.limit[n]]).words}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

// "undecided" is the limit's own name.
const sureness = (n) => (list.confidence[n] === "undecided" ? "" : ` (${list.confidence[n]})`);

function row(n) {
  const limit = said(limitNames[list.limit[n]]);
  const name = `${list.sender[n]} → ${list.receiver[n]}`;
  const open = make("button", { type: "button", onclick: () => choose(n) }, name);
  return make("tr", { "aria-selected": String(n === state.transfer) },
    make("td", {}, String(n + 1)), make("td", { class: "left" }, open), make("td", {}, bytes(list.bytes[n])),
    make("td", {}, duration(1e3 * list.ms[n])), make("td", {}, list.ms[n] ? rate((8e3 * list.bytes[n]) / list.ms[n]) : "–"),
    make("td", {}, duration(1e3 * list.lost_ms[n])),
    make("td", { class: "limit", title: limit.meaning }, swatch(limit.color), `${limit.words} ${Math.round(100 * list.share[n])}%${sureness(n)}`));
}

function fillList() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  for (let n = 0; n < list.sender.length; n++) if (matches(words, n)) found.push(n);
  listBody.replaceChildren(...found.slice(0, state.rows).map(row));
  more.hidden = found.length <= state.rows;
  const rest = data.left_out;
  listNote.textContent = `${found.length} of ${list.sender.length} transfers.` + (rest.transfers
    ? ` ${rest.transfers} that lost less time are not on this page: ${bytes(rest.bytes)}, ${duration(1e3 * rest.lost_ms)} lost in all. JSON and Parquet output has them.` : "")
    + (data.counted.connections ? ` ${figure(data.counted.connections, 0)} connections that lost less time are only counted: ${bytes(data.counted.new_bytes)}.` : "");
}

// --- what is picked -----------------------------------------------------------------------------

const picked = make("output", { id: "picked" }, "Click a point: its packets, and a filter for Wireshark.");
const filter = make("input", { id: "filter", readonly: "", "aria-label": "Wireshark display filter", value: "" });
const copy = make("button", { id: "copy", type: "button", onclick: copyFilter }, "Copy filter");

async function copyFilter() {
  filter.select();
  try {
    await navigator.clipboard.writeText(filter.value);
  } catch {
    document.execCommand("copy"); // where a page from a file may not use the clipboard
  }
  copy.textContent = "Copied";
  setTimeout(() => { copy.textContent = "Copy filter"; }, 1500);
}

const numbersOf = ({ first, last }) => (first === last ? `packet ${first}` : `packets ${first} to ${last}`);

function filterOf(packets) {
  const detail = data.details[state.transfer];
  const frames = !packets ? "" : packets.first === packets.last ? `frame.number == ${packets.first}`
    : `frame.number >= ${packets.first} && frame.number <= ${packets.last}`;
  return [detail ? detail.filter : "", frames].filter(Boolean).join(" && ");
}

function pick(event) {
  const packets = event.points.map((p) => p.customdata).find(Boolean);
  if (!packets) return;
  const where = data.files.length > 1 ? ` in ${data.files[packets.file]}` : "";
  picked.textContent = `${numbersOf(packets)}${where}`;
  filter.value = filterOf(packets);
}

// --- graphs -------------------------------------------------------------------------------------

Object.assign(LAYOUT, { margin: { l: 76, r: 16, t: 34, b: 44 }, legend: { orientation: "h", y: 1.02, yanchor: "bottom", font: { size: 12 } }, bargap: 0 });

const seconds = (us) => us / 1e6;

// A trace of pieces: `pieces` are lists of [time in µs, value]; a gap between them. Each with its packets.
function pieces(name, color, found, more) {
  const trace = { type: "scatter", mode: "lines", name, x: [], y: [], customdata: [], text: [], hovertemplate: "%{text}<br>%{x} s: %{y}", line: { color, width: 1.5 }, ...more };
  for (const { points, packets } of found) {
    for (const [t, y] of points) {
      trace.x.push(seconds(t));
      trace.y.push(y);
      trace.customdata.push(packets);
      trace.text.push(numbersOf(packets));
    }
    if (!more || !more.joined) {
      trace.x.push(null);
      trace.y.push(null);
      trace.customdata.push(null);
      trace.text.push("");
    }
  }
  delete trace.joined;
  return trace;
}

function grouped(track, view, points, columns = COLUMNS_MAX, around = 1) {
  return groups(track, view, columns, around).map((g) => ({ points: points(track.from_us[g[0]], track.to_us[g[1] - 1], g), packets: packetsOf(track, g) }));
}

function sequenceTraces({ data: sent, acks, marks }, view) {
  const traces = [
    pieces("data", "var(--data)", grouped(sent, view, (from, to, g) => [[from, least(sent.start, g)], [to, most(sent.end, g)]], COLUMNS_MAX, 0)),
    pieces("ACK", "var(--ack)", grouped(acks, view, (from, to, g) => [[from, least(acks.number_min, g)], [to, most(acks.number_max, g)]]), { joined: true, line: { color: "var(--ack)", width: 1.5, shape: "hv" } }),
  ];
  const edges = grouped(acks, view, (from, to, g) => [[from, least(acks.edge_min, g)], [to, most(acks.edge_max, g)]]).filter((e) => e.points[0][1]);
  if (edges.length) traces.push(pieces("window", "var(--window)", edges, { joined: true, line: { color: "var(--window)", width: 1.5, shape: "hv" } }));
  for (const [name, track] of Object.entries(marks)) {
    const look = data.marks[name];
    const bars = grouped(track, view, (from, to, g) => [[from, least(track.start, g)], [to, most(track.end, g)]], COLUMNS_MAX / 4, 0);
    traces.push(pieces(look.words, look.color, bars, { mode: "lines+markers", line: { color: look.color, width: 3 }, marker: { color: look.color, size: 4, symbol: look.again ? "diamond" : "line-ew-open" } }));
  }
  return traces;
}

function perBin(name, color, sums, scale, packets, [t0, t1], more) {
  const width = (t1 - t0) / sums.length;
  return { type: "scatter", mode: "lines", name, x: sums.map((_, b) => seconds(t0 + (b + 0.5) * width)), y: sums.map((n) => (n * scale * 1e6) / width),
    customdata: packets, text: packets.map((p) => (p ? numbersOf(p) : "no packet")), hovertemplate: "%{text}<br>%{x} s: %{y}", line: { color, width: 1.5, shape: "hvh" }, ...more };
}

function throughputTraces({ data: sent, acks, marks }, view) {
  const count = binsFor({ data: sent, acks }, view);
  const all = binned(sent, "payload_bytes", view, emptyBins(count));
  for (const [name, track] of Object.entries(marks)) if (data.marks[name].again) binned(track, "bytes", view, all);
  return [
    perBin("sent, with retransmissions", "var(--data)", all, 8, packetsOfBins(sent, view, count), view),
    perBin("delivered", "var(--ack)", binned(acks, "delivered_bytes", view, emptyBins(count)), 8, packetsOfBins(acks, view, count), view),
  ];
}

const KINDS = [["pure", "pure", "#0072b2"], ["piggybacked", "piggybacked", "#56b4e9"], ["duplicate", "duplicate", "#d55e00"], ["window_update", "window update", "#e6a700"]];

function ackTraces({ data: sent, acks }, view) {
  const count = binsFor({ data: sent, acks }, view);
  const packets = packetsOfBins(acks, view, count);
  const kinds = KINDS.map(([key, words, color]) => [words, color, binned(acks, key, view, emptyBins(count))]);
  return kinds.filter(([, , sums]) => sums.some(Boolean)).map(([words, color, sums]) => perBin(words, color, sums, 1, packets, view, { stackgroup: "acks", fillcolor: color, line: { color, width: 0.5, shape: "hvh" } }));
}

function rttTraces({ acks }, view) {
  const found = grouped(acks, view, (from, to, g) => [[from, least(acks.rtt_min_us, g)], [to, most(acks.rtt_max_us, g)]], COLUMNS_MAX / 2, 0).filter((e) => e.points[0][1]);
  const scaled = found.map(({ points, packets }) => ({ packets, points: points.map(([t, us]) => [t, us / 1e3]) }));
  return scaled.length ? [pieces("data to ACK", "#7f3fbf", scaled, { mode: "lines+markers", marker: { color: "#7f3fbf", size: 4 }, line: { color: "#7f3fbf", width: 1 } })] : [];
}

function flightTraces({ data: sent }, view) {
  const column = (low, high) => grouped(sent, view, (from, to, g) => [[from, least(sent[low], g)], [to, most(sent[high], g)]]);
  const traces = [pieces("in flight", "var(--data)", column("flight_min_bytes", "flight_max_bytes"), { joined: true })];
  if (sent.window_max_bytes.some(Boolean)) traces.push(pieces("advertised window", "var(--window)", column("window_min_bytes", "window_max_bytes"), { joined: true, line: { color: "var(--window)", width: 1.5, shape: "hv" } }));
  return traces;
}

const GRAPHS = [
  { id: "sequence", title: "Time-sequence", note: "Each segment is a vertical bar from its first to its last byte. Below, the ACK line; above, the right edge of the advertised window.", unit: "B", axis: "sequence number, bytes", traces: sequenceTraces, tall: true },
  { id: "throughput", title: "Throughput", note: "Payload: sent, and delivered, as ACKs and SACK blocks report it.", unit: "bit/s", axis: "bit/s", traces: throughputTraces },
  { id: "acks", title: "ACK rate by kind", note: "ACKs of the receiver.", unit: "", axis: "ACKs per second", traces: ackTraces },
  { id: "rtt", title: "RTT", note: "From data to its ACK, over the whole path; without retransmitted segments (Karn).", unit: "ms", axis: "ms", traces: rttTraces },
  { id: "flight", title: "Bytes in flight and advertised window", note: "As the sender saw them when it sent.", unit: "B", axis: "bytes", traces: flightTraces },
];

// The limits as a band below a graph.
function band(spans) {
  return { type: "bar", orientation: "h", yaxis: "y2", showlegend: false, y: spans.map(() => 0), base: spans.map((s) => seconds(s.from)), x: spans.map((s) => seconds(s.to - s.from)), width: 1,
    marker: { color: spans.map((s) => said(s.limit).color) }, text: spans.map((s) => plain(said(s.limit).words)), textposition: "none",
    hovertemplate: spans.map((s) => `${plain(said(s.limit).words)}<br>${duration(s.to - s.from)}<extra></extra>`) };
}

for (const graph of GRAPHS) {
  Object.assign(graph, plotBox(graph.title, graph.note, `plot-${graph.id}`, true, graph.tall));
  graph.about = make("p", { class: "note", id: `about-${graph.id}` });
  graph.box.querySelector("h3").id = `title-${graph.id}`;
  graph.target.before(graph.about);
  for (const [name, value] of Object.entries({ role: "figure", "aria-labelledby": `title-${graph.id}`, "aria-describedby": `about-${graph.id}` })) graph.target.setAttribute(name, value);
}

// Minimum and maximum in view of each trace, as text for readers who cannot see the graph.
function summary(graph, traces) {
  const words = traces.slice(0, 6).map((trace) => {
    const values = trace.y.filter((v) => v !== null);
    if (!values.length) return null;
    const [low, high] = [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
    const show = (v) => (graph.unit === "B" ? bytes(v) : graph.unit === "bit/s" ? rate(v) : `${figure(v, 2)} ${graph.unit}`.trim());
    return `${trace.name}: ${show(low)} to ${show(high)}`;
  });
  return words.filter(Boolean).join("; ") || "Nothing was measured here.";
}

function drawGraph(graph) {
  const traces = graph.traces(state.series, state.view).filter((trace) => trace.x.length);
  graph.about.textContent = summary(graph, traces);
  // The band is shown even without measurements, so that the graph can still be zoomed.
  draw(graph.target, [...traces, band(spansInView(state.spans, state.view))], {
    hovermode: "closest", dragmode: "zoom", barmode: "overlay",
    xaxis: axis("time since the start of the capture, s", { range: state.view.map(seconds), anchor: "y2" }),
    yaxis: axis(graph.axis, { domain: [0.08, 1], fixedrange: true, rangemode: graph.id === "sequence" ? "normal" : "tozero", exponentformat: "SI" }),
    yaxis2: { domain: [0, 0.05], fixedrange: true, range: [-0.5, 0.5], showgrid: false, zeroline: false, showticklabels: false },
  });
  if (!graph.target.dataset.listens) {
    graph.target.dataset.listens = "yes";
    graph.target.on("plotly_click", pick);
    graph.target.on("plotly_relayout", (change) => {
      if ("xaxis.range[0]" in change) show([change["xaxis.range[0]"] * 1e6, change["xaxis.range[1]"] * 1e6]);
      else if (change["xaxis.autorange"]) show(state.whole);
    });
  }
}

const tableBody = make("tbody", {});
const TABLE_ROWS = 20;

// The graphs as figures.
function fillTable() {
  const [t0, t1] = state.view;
  const { data: sent, acks, marks } = state.series;
  const rows = (track, column, into = emptyBins(TABLE_ROWS)) => binned(track, column, state.view, into);
  const rates = [rows(sent, "payload_bytes"), rows(acks, "delivered_bytes")];
  const counts = KINDS.map(([key]) => rows(acks, key));
  const again = emptyBins(TABLE_ROWS);
  for (const [name, track] of Object.entries(marks)) {
    if (!data.marks[name].again) continue;
    rows(track, "packets", again);
    rows(track, "bytes", rates[0]);
  }
  tableBody.replaceChildren(...Array.from({ length: TABLE_ROWS }, (_, r) => {
    const [from, to] = [t0 + ((t1 - t0) * r) / TABLE_ROWS, t0 + ((t1 - t0) * (r + 1)) / TABLE_ROWS];
    const inside = (track) => [lowerBound(track.to_us, from), lowerBound(track.from_us, to)];
    const [rttLow, rttHigh] = [least(acks.rtt_min_us, inside(acks)), most(acks.rtt_max_us, inside(acks))];
    const inFlight = most(sent.flight_max_bytes, inside(sent));
    const longest = spansInView(state.spans, [from, to]).sort((a, b) => b.to - b.from - (a.to - a.from))[0];
    const cells = [`${seconds(from).toFixed(4)} to ${seconds(to).toFixed(4)}`, ...rates.map((sums) => rate((8e6 * sums[r]) / (to - from))),
      ...counts.map((sums) => String(Math.round(sums[r]))), String(Math.round(again[r])),
      rttLow ? `${duration(rttLow)} to ${duration(rttHigh)}` : "–", inFlight === null ? "–" : bytes(inFlight),
      longest ? said(longest.limit).words : "–"];
    return make("tr", {}, ...cells.map((text) => make("td", {}, text)));
  }));
}

// --- zoom ---------------------------------------------------------------------------------------

function show([from, to]) {
  const [low, high] = state.whole;
  const width = Math.min(high - low, Math.max(to - from, 10));
  const start = Math.min(Math.max(from, low), high - width);
  state.view = [start, start + width];
  if (!state.series) return;
  GRAPHS.forEach(drawGraph);
  fillTable();
  document.body.dataset.view = state.view.map((us) => us.toFixed(0)).join(" ");
}

function zoom(factor, move = 0) {
  const [from, to] = state.view;
  const [middle, half] = [(from + to) / 2 + move * (to - from), ((to - from) * factor) / 2];
  show([middle - half, middle + half]);
}

const button = (id, text, label, act) => make("button", { id, type: "button", "aria-label": label, title: label, onclick: act }, text);
const zoomButtons = make("div", { class: "zoom" }, button("earlier", "←", "Earlier", () => zoom(1, -0.5)), " ", button("later", "→", "Later", () => zoom(1, 0.5)), " ",
  button("closer", "+", "Zoom in", () => zoom(0.5)), " ", button("wider", "−", "Zoom out", () => zoom(2)), " ", button("whole", "Whole", "Whole transfer", () => show(state.whole)));

// --- the transfer -------------------------------------------------------------------------------

const CLASS_OF = { "bold cyan": "what", "": "", green: "todo", bold: "type", dim: "small" };
const linesHost = make("div", { id: "lines" });
const graphsNote = make("p", { class: "note", id: "graphs-note" });
const stack = make("div", { class: "stack" }, ...GRAPHS.map((graph) => graph.box),
  make("details", { id: "table" }, make("summary", {}, "The graphs as a table"),
    make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...["time, s", "throughput", "delivered", ...KINDS.map(([, words]) => `${words} ACKs`), "sent again", "RTT", "most in flight", "limit"].map((t) => make("th", {}, t)))), tableBody))));
const pickedBar = make("div", { class: "picked" }, zoomButtons, picked, filter, copy);

function shownLines(n) {
  const detail = data.details[n];
  if (!detail) {
    const limit = said(limitNames[list.limit[n]]);
    return [make("p", { class: "what" }, `${list.sender[n]} → ${list.receiver[n]}: ${bytes(list.bytes[n])} in ${duration(1e3 * list.ms[n])}`),
      make("p", {}, `${Math.round(100 * list.share[n])}% of the time: ${limit.words}${sureness(n)}: ${limit.meaning}.`)];
  }
  const told = detail.lines.map(([text, style]) => (style === "bold" ? make("code", {}, text.trim()) : make("p", { class: CLASS_OF[style] || "" }, text.trim())));
  const bar = make("div", { class: "shares", role: "img", "aria-label": detail.shares.map(([name, share]) => `${said(name).words} ${(100 * share).toFixed(1)}%`).join(", ") },
    ...detail.shares.map(([name, share]) => make("span", { style: `background:${said(name).color};width:${100 * share}%`, title: `${said(name).words} ${(100 * share).toFixed(1)}%` })));
  const legend = make("ul", { class: "legend" }, ...detail.shares.map(([name, share]) => make("li", { title: said(name).meaning }, swatch(said(name).color), `${said(name).words} ${(100 * share).toFixed(1)}%`)));
  return [...told, bar, legend, ...(detail.policies ? [policies(detail.policies)] : [])];
}

// Results of other ACK policies on the same arrivals.
function policies({ notes, acks_best: best, rows }) {
  const shares = (key) => key.startsWith("acks_saved");
  const texts = (row) => Object.keys(data.of_policy).map((key, i) => (row[i] === null ? "–" : shares(key) ? `${figure(100 * row[i], 1)}%`
    : key.endsWith("_ns") ? duration(row[i] / 1e3) : typeof row[i] === "number" ? figure(row[i], key === "acks" ? 0 : 2) : row[i]));
  const cell = (name) => (text, i) => make(name, i ? {} : { class: "left" }, text);
  return make("details", { id: "policies", open: "" }, make("summary", {}, "Other ACK policies on the same arrivals"),
    make("p", { class: "note" }, ["How the sender would react to other ACKs is not known.", ...notes.map((note) => `${note[0].toUpperCase()}${note.slice(1)}.`),
      `Best schedule in hindsight: ${best} ACKs, where an ACK costs as much as ${duration(data.price.unit_ns / 1e3)} of one segment's latency.`].join(" ")),
    make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...Object.values(data.of_policy).map(cell("th")))),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, ...texts(row).map(cell("td"))))))));
}

function choose(n) {
  state.transfer = n;
  const detail = data.details[n];
  linesHost.replaceChildren(...shownLines(n));
  state.series = detail && detail.series;
  if (state.series) {
    const { data: sent, acks, marks } = detail.series;
    state.series = { data: unpacked(sent), acks: unpacked(acks), marks: Object.fromEntries(Object.entries(marks).map(([name, track]) => [name, unpacked(track)])) };
    state.spans = { ...detail.spans, from_us: summed(detail.spans.from_us) };
    const ends = [state.spans, ...[state.series.data, state.series.acks].filter((t) => t.length)];
    const low = Math.min(...ends.map((t) => t.from_us[0] ?? Infinity));
    const high = Math.max(state.spans.end_us, ...ends.slice(1).map((t) => t.to_us[t.length - 1]));
    state.whole = [low, Math.max(high, low + 10)];
  }
  stack.hidden = pickedBar.hidden = !state.series;
  const each = state.series ? Math.max(state.series.data.each, state.series.acks.each) : 1;
  graphsNote.textContent = state.series
    ? `Drag to zoom, double-click for the whole; all graphs follow. ${each > 1 ? `A point stands for up to ${each} packets, with the smallest and largest values.` : "Every packet is here."}`
    : data.read_again ? "No graphs of this transfer: those that lost more time have them. Diagnose a capture of this connection alone."
      : "No graphs: they need a second reading of the capture, which standard input does not allow.";
  filter.value = filterOf(null);
  picked.textContent = "Click a point: its packets, and a filter for Wireshark.";
  fillList();
  show(state.whole);
  document.body.dataset.drawn = String(n);
}

main.append(
  make("header", {}, make("p", { class: "kicker" }, "ackwise diagnose"), make("h1", {}, data.heading),
    metaList([...(data.command ? [["command", make("code", {}, data.command)]] : []), ["made by", data.origin],
      ["capture", `${figure(data.packets, 0)} packets, ${figure(data.tcp_packets, 0)} with TCP, ${duration(data.duration_ns / 1e3)}`],
      ["connections", `${figure(data.connections, 0)}, with ${figure(list.sender.length + data.left_out.transfers, 0)} transfers`]])),
  make("section", { id: "transfers" }, make("h2", {}, "Transfers by the time they lost"),
    make("p", { class: "note" }, "Time lost: what would be saved if the slowest link were all that limits a transfer."), search, listNote,
    make("div", { class: "scroll" }, make("table", { id: "ranked" }, make("thead", {}, make("tr", {}, ...["", "sender → receiver", "data", "time", "throughput", "time lost", "limit"].map((t, i) => make("th", i % 5 === 1 ? { class: "left" } : {}, t)))), listBody)), more),
  make("section", { id: "transfer" }, linesHost, graphsNote, pickedBar, stack),
  make("footer", {}, "This page is self-contained and makes no network requests."));

if (list.sender.length) choose(0);
else linesHost.append(make("p", { class: "empty" }, "No connection of this capture carries data."));
fillList();
