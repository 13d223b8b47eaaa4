// Plots: of the JSON that a question of the API answers with. What is plotted stands beside it as a table, too; a
// plot that cannot be drawn leaves that.
//
//   <div data-plot="ADDRESS" data-x="day" data-y="cost_usd" data-shape="bars"></div>
//
// data-list names the part of the answer that holds the rows, data-marks the numbers in it that are marked on the x
// axis; data-labels and data-mark-labels are what people read, with bars between them.

import uPlot from "./uplot.js";

const HEIGHT = 220;
const DAY_SECONDS = 86_400;
const NARROW = 480;

const drawn = new Map();

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

const kinds = {
  number: (value) => value.toLocaleString(),
  tokens: (value) => value.toLocaleString([], { notation: "compact", maximumFractionDigits: 1 }),
  dollars: (value) => value.toLocaleString([], { style: "currency", currency: "USD", maximumFractionDigits: 3 }),
  percent: (value) => value.toLocaleString([], { style: "percent", maximumFractionDigits: 1 }),
};

function read(told, { list, x, y }) {
  const rows = list ? told[list] : told;
  const ys = y.split(" ");
  const place = (row) => (x === "day" ? Date.parse(`${row[x]}T00:00:00Z`) / 1000 : row[x]);
  return [rows.map(place), ...ys.map((name) => rows.map((row) => row[name]))];
}

function options(box, told) {
  const { x, y, shape, kind = "number", labels = "" } = box.dataset;
  const say = (_, values) => values.map((value) => (value === null ? "" : kinds[kind](value)));
  const axis = { stroke: color("soft"), grid: { stroke: color("line"), width: 1 }, ticks: { show: false } };
  const names = labels.split("|");
  const strokes = [color("act"), color("wait"), color("ok")];
  const bars = shape === "bars" ? { paths: uPlot.paths.bars({ size: [0.6, 40] }), points: { show: false } } : {};
  return {
    width: Math.max(box.clientWidth, 1),
    height: box.clientWidth < NARROW ? Math.round(HEIGHT * 0.8) : HEIGHT,
    cursor: { y: false, drag: { x: false, y: false } },
    legend: { show: true, live: true },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1e3), "UTC"),
    scales: { x: { time: x === "day", range: padded(x === "day") }, y: { range: (_, low, high) => [Math.min(low, 0), high > 0 ? high * 1.1 : 1] } },
    axes: [
      { ...axis, size: 28, ...(x === "day" && { incrs: [1, 2, 7, 14, 28].map((days) => days * DAY_SECONDS), values: days }) },
      { ...axis, size: 64, values: say },
    ],
    series: [
      { label: names[0], value: (_, at) => (at === null ? "" : x === "day" ? day(at) : String(at)) },
      ...y.split(" ").map((_, index) => ({
        label: names[index + 1],
        stroke: strokes[index],
        fill: index === 0 ? color(shape === "bars" ? "act" : "act-soft") : undefined,
        width: 1.5,
        value: (_, value) => (value === null ? "" : kinds[kind](value)),
        ...bars,
      })),
    ],
    hooks: { draw: [(plot) => mark(plot, marksOf(box, told))] },
  };
}

function padded(isDays) {
  return (_, low, high) => (isDays ? [low - DAY_SECONDS / 2, high + DAY_SECONDS / 2] : [low, Math.max(high, low + 1)]);
}

function day(seconds) {
  return new Date(seconds * 1e3).toLocaleDateString([], { timeZone: "UTC", day: "numeric", month: "short" });
}

function days(_, found) {
  return found.map(day);
}

function marksOf(box, told) {
  const { marks = "", markLabels = "" } = box.dataset;
  const labels = markLabels.split("|");
  const found = marks.split(" ").map((name, index) => ({ at: told[name], label: labels[index] }));
  return found.filter(({ at }) => at);
}

// Where something happens to a session: a line from top to bottom, with its name.
function mark(plot, marks) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.font = `${11 * devicePixelRatio}px system-ui`;
  marks.forEach(({ at, label }, index) => {
    const x = Math.round(plot.valToPos(at, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) return;
    ctx.strokeStyle = ctx.fillStyle = color("wait");
    ctx.setLineDash(index % 2 ? [] : [3 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.textAlign = index % 2 ? "left" : "right";
    ctx.fillText(label, x + (index % 2 ? 4 : -4) * devicePixelRatio, bbox.top + 12 * devicePixelRatio);
  });
  ctx.restore();
}

// Where there is nothing to draw there is no plot.
function draw(box, told) {
  drawn.get(box)?.plot.destroy();
  drawn.delete(box);
  const [, ...series] = read(told, box.dataset);
  const isEmpty = !series.flat().some(Boolean);
  box.closest("figure").hidden = isEmpty;
  if (isEmpty) return;
  const plot = new uPlot(options(box, told), read(told, box.dataset), box);
  drawn.set(box, { plot, told, width: box.clientWidth });
}

async function load(box) {
  const answer = await fetch(box.dataset.plot, { credentials: "same-origin", redirect: "error" });
  if (answer.ok && box.isConnected) draw(box, await answer.json());
}

// Every plot that is shown, anew; where the server does not answer, what was drawn stays.
export async function plotAll() {
  for (const box of drawn.keys()) if (!box.isConnected) drawn.delete(box);
  const boxes = [...document.querySelectorAll("[data-plot]")];
  await Promise.allSettled(boxes.map(load));
}

new ResizeObserver(() => {
  drawn.forEach(({ told, width }, box) => {
    if (box.isConnected && box.clientWidth !== width) draw(box, told);
  });
}).observe(document.body);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  drawn.forEach(({ told }, box) => draw(box, told));
});

// What the server renders anew has no plot in it yet.
const renewed = new MutationObserver(plotAll);
document.querySelectorAll("[data-live]").forEach((part) => renewed.observe(part, { childList: true }));
plotAll();
