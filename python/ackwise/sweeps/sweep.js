// SPDX-License-Identifier: MIT
// The page of a sweep: progress, policies, and for two keys the best policy by region and a surface.

const doc = data.document;
const names = doc.candidates.map((c) => c.candidate);
const color = Object.fromEntries(names.map((name, i) => [name, COLORS[i % COLORS.length]]));
const measures = Object.entries(data.measures);
const pairs = doc.regions.map((r) => r.across.key + (r.down.key ? ` × ${r.down.key}` : ""));
const state = { pair: 0, policy: 0, measure: 0 };

const percent = (share) => (share === null ? "–" : `${(100 * share).toFixed(1)}%`);
const short = (value, digits) => (value === null ? "–" : value.toFixed(digits));

function header() {
  const sweep = doc.sweep;
  const progress = make("div", {});
  data.progress.forEach((line) => progress.append(make("div", {}, line)));
  return make("header", {},
    make("p", { class: "kicker" }, "ackwise sweep"),
    make("h1", {}, sweep.title),
    make("p", { class: "source" }, sweep.source.trim()),
    metaList([
      ["command", make("code", {}, data.command)],
      ["ran on", `${sweep.world}, ${sweep.made_by}`],
      ["points", sweep.sampling],
      ["links", sweep.links.join(", ")],
      ["workloads", sweep.workloads.join(", ")],
      ["flows", sweep.group],
      ["progress", progress],
    ]));
}

function policies() {
  const heads = ["policy", "best", "goodput", "ACKs/segment", "RTT p99", "on the front"];
  const head = make("tr", {});
  heads.forEach((text) => head.append(make("th", {}, text)));
  const body = make("tbody", {});
  for (const one of doc.candidates) {
    const swatch = make("span", { class: "swatch", style: `background:${color[one.candidate]}` });
    body.append(make("tr", {},
      make("td", { class: "policy" }, swatch, one.candidate),
      make("td", {}, percent(one.best_share)),
      make("td", {}, percent(one.goodput_share)),
      make("td", {}, short(one.acks_per_segment, 3)),
      make("td", {}, one.rtt_p99_ratio === null ? "–" : `×${short(one.rtt_p99_ratio, 2)}`),
      make("td", { class: one.front ? "best" : "" }, percent(one.front_share))));
  }
  return make("section", { id: "policies" }, make("h2", {}, "Policies, over all complete points"),
    make("p", { class: "note" }, "Best: share of points with the fewest ACKs among policies within 1% of the best goodput. " +
      "Goodput: mean share of the point's best. RTT p99: mean multiple of the point's lowest. On the front: share of points " +
      "at which no other policy is at least as good in all three and better in one; marked if that also holds for the means."),
    make("div", { class: "scroll" }, make("table", {}, make("thead", {}, head), body)));
}

const front = plotBox("Pareto front", "Each policy's means. Down and to the right is better; a small marker has a low RTT p99. The line joins policies that no other beats in goodput, ACKs and RTT p99 at once.", "plot-front", true);
const winners = plotBox("Best policy by region", "The policy that is best at most points of each pair of classes, and at what share of them.", "plot-regions", true, true);
const surface = plotBox("Response surface", "Mean of one measure for one policy.", "plot-surface", true, true);

function drawFront() {
  const known = doc.candidates.filter((c) => c.goodput_share !== null && c.acks_per_segment !== null);
  const sizes = (list) => list.map((c) => 10 + 14 * Math.min(1, Math.log2(c.rtt_p99_ratio || 1)));
  const marked = known.filter((c) => c.front).sort((a, b) => a.acks_per_segment - b.acks_per_segment);
  const traces = known.map((c) => ({
    type: "scatter", mode: "markers", name: plain(c.candidate),
    x: [100 * c.goodput_share], y: [c.acks_per_segment],
    marker: { color: color[c.candidate], size: sizes([c]) },
    hovertemplate: `%{x:.2f}% of the best goodput<br>%{y:.3f} ACKs/segment<br>RTT p99 ×${short(c.rtt_p99_ratio, 2)}`,
  }));
  if (marked.length > 1) {
    traces.unshift({
      type: "scatter", mode: "lines", name: "front", hoverinfo: "skip", line: { color: "var(--axis)", dash: "dot" }, showlegend: false,
      x: marked.map((c) => 100 * c.goodput_share), y: marked.map((c) => c.acks_per_segment),
    });
  }
  draw(front.target, traces, {
    xaxis: axis("goodput, % of the point's best"), yaxis: axis("ACKs per data segment", { rangemode: "tozero" }), showlegend: true,
  });
}

function axes(region) {
  return {
    xaxis: axis(plain(region.across.key), { type: "category" }),
    yaxis: axis(plain(region.down.key), { type: "category" }),
    margin: { l: 64, r: 16, t: 40, b: 48 }, // the top: for the buttons
  };
}

function drawWinners() {
  const region = doc.regions[state.pair];
  if (!region) return draw(winners.target, [], {});
  const last = Math.max(1, names.length - 1);
  const steps = names.flatMap((name, i) => [[i / names.length, color[name]], [(i + 1) / names.length, color[name]]]);
  const texts = region.best.map((row, j) => row.map((name, i) => (name === null ? "" :
    `${plain(name)}<br>${percent(region.best_share[j][i])} of ${region.points[j][i]}`)));
  return draw(winners.target, [{
    type: "heatmap", x: region.across.classes.map(plain), y: region.down.classes.map(plain), text: texts, texttemplate: "%{text}",
    z: region.best.map((row) => row.map((name) => (name === null ? null : names.indexOf(name)))),
    zmin: -0.5, zmax: last + 0.5, colorscale: steps, showscale: false, xgap: 2, ygap: 2, opacity: 0.85,
    hovertemplate: "%{x}<br>%{y}<br>%{text}<extra></extra>",
  }], axes(region));
}

function drawSurface() {
  const region = doc.regions[state.pair];
  if (!region) return draw(surface.target, [], {});
  const [key, text] = measures[state.measure];
  const values = region.means[key][state.policy];
  return draw(surface.target, [{
    type: "heatmap", x: region.across.classes.map(plain), y: region.down.classes.map(plain), z: values, colorscale: "Viridis",
    reversescale: key !== "goodput_share", xgap: 1, ygap: 1, texttemplate: "%{z:.3f}",
    colorbar: { title: { text: plain(text), side: "right" } },
    hovertemplate: `%{x}<br>%{y}<br>${plain(text)}: %{z:.4f}<extra></extra>`,
  }], axes(region));
}

function drawPair() {
  drawWinners();
  drawSurface();
}

const pairChoice = choice("keys", pairs, (i) => { state.pair = i; drawPair(); });
const policyChoice = choice("policy (surface)", names, (i) => { state.policy = i; drawSurface(); });
const measureChoice = choice("measure (surface)", measures.map(([, text]) => text), (i) => { state.measure = i; drawSurface(); });

main.append(header(), policies(),
  make("section", {}, make("div", { class: "plots" }, front.box)),
  make("section", { id: "regions" },
    make("div", { class: "controls" }, pairChoice.element, policyChoice.element, measureChoice.element),
    make("div", { class: "plots" }, winners.box, surface.box)));
drawFront();
drawPair();
