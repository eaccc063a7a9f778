// Two small charts as SVG. Each change draws them from scratch.

const SPACE = "http://www.w3.org/2000/svg";
/** Units across a chart: as many as there are pixels, so that text has its own size on a phone too. */
const room = () => Math.max(280, Math.min(560, innerWidth - 80));

function shape(name, attributes, text) {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function frame(width, height, label) {
  return shape("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
}

/** Round numbers that divide a range into about `count` parts. */
function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, place) => (first + place) * step);
}

const shown = (number) => Number(number.toPrecision(6)).toLocaleString("en");
const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** Lines over the number of answers. `series`: [{name, points: [[x, y], …]}], `needed`: a level to mark. */
export function lines(series, needed) {
  const width = room();
  const height = 260;
  const [left, right, top, bottom] = [34, 118, 8, 26];
  const chart = frame(width, height, "Evidence against each rival over the number of answers");
  const points = series.flatMap((one) => one.points);
  const farthest = Math.max(1, ...points.map(([x]) => x));
  const highest = Math.min(3 * needed, Math.max(1.25 * needed, ...points.map(([, y]) => y)));
  const x = (value) => left + (value / farthest) * (width - left - right);
  const y = (value) => height - bottom - (Math.min(Math.max(value, 0), highest) / highest) * (height - top - bottom);
  for (const value of ticks(0, highest, 4)) {
    chart.append(shape("line", { class: "axis", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    chart.append(shape("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, shown(value)));
  }
  for (const value of ticks(0, farthest, 5).filter(Number.isInteger)) {
    chart.append(shape("text", { x: x(value), y: height - 8, "text-anchor": "middle" }, shown(value)));
  }
  chart.append(shape("line", { class: "needed", x1: left, x2: width - right, y1: y(needed), y2: y(needed) }));
  const names = [];
  series.forEach((one, number) => {
    if (!one.points.length) return;
    const colour = `var(--line-${number % 8})`;
    const path = one.points.map(([across, up]) => `${x(across).toFixed(1)},${y(up).toFixed(1)}`).join(" ");
    const line = shape("polyline", { class: "series", points: path });
    line.style.stroke = colour;
    chart.append(line);
    const [across, up] = one.points.at(-1);
    const end = shape("circle", { cx: x(across), cy: y(up), r: 3.5 });
    end.style.fill = colour;
    chart.append(end);
    names.push({ at: y(up), colour, text: one.name });
  });
  names.sort((one, other) => one.at - other.at);
  names.forEach((name, place) => {
    if (place) name.at = Math.max(name.at, names[place - 1].at + 15);
  });
  let below = height - bottom + 15;
  for (const name of [...names].reverse()) {
    name.at = below = Math.min(name.at, below - 15); // what was pushed below the axis pushes back
    const text = shape("text", { x: width - right + 10, y: name.at + 4 }, short(name.text, 15));
    text.style.fill = name.colour;
    chart.append(text);
  }
  return chart;
}

/** Scores with intervals. `rows`: [{name, score, low, high}], an open end is null. */
export function intervals(rows) {
  const width = room();
  const [left, right, line] = [130, 14, 26];
  const height = rows.length * line + 30;
  const chart = frame(width, height, "Estimated scores of the items with their intervals");
  const ends = rows.flatMap((row) => [row.score, row.low, row.high]).filter((end) => end !== null);
  const spread = Math.max(0.5, Math.max(...ends) - Math.min(...ends));
  const [low, high] = [Math.min(...ends) - 0.06 * spread, Math.max(...ends) + 0.06 * spread];
  const x = (value) => left + ((value - low) / (high - low)) * (width - left - right);
  for (const value of ticks(low, high, 5)) {
    chart.append(shape("line", { class: "axis", x1: x(value), x2: x(value), y1: 0, y2: height - 24 }));
    chart.append(shape("text", { x: x(value), y: height - 8, "text-anchor": "middle" }, shown(value)));
  }
  rows.forEach((row, place) => {
    const middle = place * line + line / 2;
    const from = row.low === null ? left : x(row.low);
    const to = row.high === null ? width - right : x(row.high);
    chart.append(shape("text", { class: "label", x: left - 12, y: middle + 4, "text-anchor": "end" }, short(row.name, 17)));
    chart.append(shape("line", { class: "range", x1: from, x2: to, y1: middle, y2: middle }));
    if (row.low === null) chart.append(shape("text", { x: left - 4, y: middle + 4, "text-anchor": "middle" }, "‹"));
    if (row.high === null) chart.append(shape("text", { x: width - right + 8, y: middle + 4, "text-anchor": "middle" }, "›"));
    chart.append(shape("circle", { class: "point", cx: x(row.score), cy: middle, r: 4.5 }));
  });
  return chart;
}
