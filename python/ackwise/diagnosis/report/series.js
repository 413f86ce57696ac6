// SPDX-License-Identifier: MIT
// Tracks of a transfer: unpacked, limited to the view, and thinned to the screen's resolution.
// Times are microseconds since the start of the capture.

const COLUMNS_MAX = 1000; // maximum number of pixel columns with separate points
const BINS_MIN = 20; // minimum number of bins of a rate
const BINS_MAX = 160;
const BIN_POINTS = 6; // minimum mean number of points per bin

// Columns contain differences from the previous value; null stays null.
function summed(differences) {
  let value = 0;
  return differences.map((d) => (d === null ? null : (value += d)));
}

const NAMES = ["file", "payload_bytes", "delivered_bytes", "bytes", "pure", "piggybacked", "duplicate", "window_update",
  "start", "end", "number_min", "number_max", "flight_min_bytes", "flight_max_bytes", "window_min_bytes", "window_max_bytes",
  "edge_min", "edge_max", "rtt_min_us", "rtt_max_us"];

function unpacked(packed) {
  const track = { each: packed.each, length: packed.from_us ? packed.from_us.length : 0 };
  for (const [name, column] of Object.entries(packed)) {
    if (Array.isArray(column)) track[name] = summed(column);
  }
  const constant = (value) => new Array(track.length).fill(value);
  track.from_us = track.from_us || [];
  track.first = track.first || [];
  track.to_us = track.to_us || track.from_us;
  track.last = track.last || track.first;
  track.packets = track.packets || constant(1);
  // A column with only zeros is not in the file.
  for (const name of NAMES) track[name] = track[name] || constant(0);
  return track;
}

// Index of the first value that is not below `wanted`.
function lowerBound(values, wanted) {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Ranges [from, to) of points in view, plus `around` on each side, so that lines extend beyond the
// picture. If there are more than `columns`, the points of one pixel column form one range.
function groups(track, [t0, t1], columns, around) {
  if (!track.length) return [];
  const first = Math.max(0, lowerBound(track.to_us, t0) - around);
  const last = Math.min(track.length, lowerBound(track.from_us, t1) + around);
  const found = [];
  const width = last - first > columns ? (t1 - t0) / columns : 0;
  for (let i = first; i < last;) {
    const end = track.from_us[i] + width;
    let next = i + 1;
    while (width && next < last && track.from_us[next] < end) next++;
    found.push([i, next]);
    i = next;
  }
  return found;
}

function least(column, [from, to]) {
  let found = null;
  for (let i = from; i < to; i++) if (column[i] !== null && (found === null || column[i] < found)) found = column[i];
  return found;
}

function most(column, [from, to]) {
  let found = null;
  for (let i = from; i < to; i++) if (column[i] !== null && (found === null || column[i] > found)) found = column[i];
  return found;
}

// Packet numbers, in their file, of points [from, to).
function packetsOf(track, [from, to]) {
  const file = track.file[from];
  let last = track.last[from];
  for (let i = from; i < to; i++) if (track.file[i] === file) last = Math.max(last, track.last[i]);
  return { file, first: track.first[from], last };
}

// Number of bins for the view.
function binsFor({ data, acks }, [t0, t1]) {
  const points = [data, acks].map((track) => lowerBound(track.from_us, t1) - lowerBound(track.to_us, t0));
  return Math.min(BINS_MAX, Math.max(BINS_MIN, Math.floor(Math.min(...points) / BIN_POINTS)));
}

// Adds a column to `bins`, the parts of the view; a point spreads over its own time.
function binned(track, column, [t0, t1], bins) {
  const width = (t1 - t0) / bins.length;
  const { from_us, to_us, [column]: amounts } = track;
  for (let i = lowerBound(to_us, t0); i < track.length && from_us[i] <= t1; i++) {
    if (!amounts[i]) continue;
    const [from, to] = [(from_us[i] - t0) / width, (to_us[i] - t0) / width];
    if (to - from < 1e-9) {
      if (from >= 0 && from <= bins.length) bins[Math.min(bins.length - 1, Math.floor(from))] += amounts[i];
      continue;
    }
    for (let b = Math.max(0, Math.floor(from)); b < Math.min(bins.length, to); b++) {
      bins[b] += (amounts[i] * (Math.min(b + 1, to) - Math.max(b, from))) / (to - from);
    }
  }
  return bins;
}

const emptyBins = (count) => new Array(count).fill(0);

// Packets in each bin, or null.
function packetsOfBins(track, [t0, t1], count) {
  const width = (t1 - t0) / count;
  return Array.from({ length: count }, (_, b) => {
    const from = lowerBound(track.to_us, t0 + b * width);
    const to = lowerBound(track.from_us, t0 + (b + 1) * width);
    return to > from ? packetsOf(track, [from, to]) : null;
  });
}

// Limits in view: neighbours with the same limit are one, and what is narrower than a pixel goes with
// the one in front.
function spansInView(spans, [t0, t1]) {
  const found = [];
  const pixel = (t1 - t0) / COLUMNS_MAX;
  for (let i = 0; i < spans.limit.length; i++) {
    const from = Math.max(t0, spans.from_us[i]);
    const to = Math.min(t1, i + 1 < spans.limit.length ? spans.from_us[i + 1] : spans.end_us);
    if (to <= from) continue;
    const last = found[found.length - 1];
    if (last && (last.limit === spans.limit[i] || to - from < pixel)) last.to = to;
    else found.push({ from, to, limit: spans.limit[i] });
  }
  return found;
}
