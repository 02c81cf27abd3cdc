// Lines of the last 24 hours, drawn as SVG: small ones of queues, and the three of the timeline, which
// a slider reads out.
import {clock, count, element, gpus, setText, svg, usd} from './dom.js';

const kWidth = 720, kHeight = 120;
const kGapMinutes = 3;  // a longer pause between two points is a gap in the line

const round = (number) => Math.round(number * 10) / 10;

// Paths of the values over the minutes, with gaps; `close`: down to the bottom, to be filled.
function path(minutes, values, from, to, max, close) {
  const x = (minute) => round((kWidth * (minute - from)) / Math.max(1, to - from));
  const y = (value) => round(kHeight - (kHeight * value) / max);
  let line = '', start = 0;
  minutes.forEach((minute, index) => {
    const begins = index === 0 || minute - minutes[index - 1] > kGapMinutes;
    if (begins) start = minute;
    line += `${begins ? 'M' : 'L'}${x(minute)} ${y(values[index])}`;
    const ends = index + 1 === minutes.length || minutes[index + 1] - minute > kGapMinutes;
    if (ends && close) line += `L${x(minute)} ${kHeight}L${x(start)} ${kHeight}Z`;
  });
  return line;
}

// The least round number that is not below `value`.
function ceiling(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= value);
}

class Chart {
  // series: [{column, title, kind: 'area' or 'line'}]; `scale`: what a unit of the axis is.
  constructor(parent, title, series, scale, format) {
    Object.assign(this, {series, scale, format});
    this.paths = series.map(({kind, column}) => svg('path', {class: `${kind} ${column}`, 'vector-effect': 'non-scaling-stroke'}));
    this.marks = svg('g', {class: 'marks'});
    this.cursor = svg('line', {class: 'cursor', y1: 0, y2: kHeight, 'vector-effect': 'non-scaling-stroke'});
    this.plot = svg('svg', {viewBox: `0 0 ${kWidth} ${kHeight}`, preserveAspectRatio: 'none', role: 'img'}, this.marks, ...this.paths, this.cursor);
    this.top = element('span', {class: 'axis top'});
    this.readout = element('span', {class: 'readout'});
    const legend = series.map(({column, kind, title: name}) => element('span', {class: 'entry'}, element('span', {class: `swatch ${kind} ${column}`}), name));
    this.title = title;
    parent.append(element('figure', {class: 'chart'}, element('figcaption', {}, element('strong', {}, title), ...legend, this.readout),
      element('div', {class: 'plot'}, this.plot, this.top, element('span', {class: 'axis zero'}, '0'))));
  }

  show(timeline, from, to) {
    const most = Math.max(...this.series.map(({column}) => Math.max(0, ...timeline[column])));
    const max = ceiling(most / this.scale) * this.scale;
    this.series.forEach(({column, kind}, index) => {
      this.paths[index].setAttribute('d', path(timeline.minutes, timeline[column], from, to, max, kind === 'area'));
    });
    setText(this.top, this.format(max));
    const latest = this.series.map(({column, title}) => `${title} ${this.format(timeline[column].at(-1) ?? 0)}`).join(', ');
    this.plot.setAttribute('aria-label', `${this.title} over the last 24 hours; now ${latest}; at most ${this.format(most)}`);
  }

  mark(events, from, to) {
    this.marks.replaceChildren(...events.filter(({at}) => at / 6e4 >= from).map(({at, kind}) => {
      const x = round((kWidth * (at / 6e4 - from)) / Math.max(1, to - from));
      return svg('line', {class: `mark ${kind}`, x1: x, x2: x, y1: 0, y2: 12, 'vector-effect': 'non-scaling-stroke'});
    }));
  }

  read(timeline, index, from, to) {
    const x = round((kWidth * (timeline.minutes[index] - from)) / Math.max(1, to - from));
    this.cursor.setAttribute('x1', x);
    this.cursor.setAttribute('x2', x);
    setText(this.readout, this.series.map(({column}) => this.format(timeline[column][index])).join(' of '));
  }
}

export class Timeline {
  constructor(parent) {
    this.charts = [
      new Chart(parent, 'GPUs', [{column: 'used', title: 'in use', kind: 'area'}, {column: 'known', title: 'there', kind: 'line'}], 1000, (milli) => count(Math.round(milli / 100) / 10)),
      new Chart(parent, 'Waiting workloads', [{column: 'waiting', title: 'waiting', kind: 'area'}], 1, count),
      new Chart(parent, 'Cost per hour', [{column: 'price', title: 'provisioned nodes', kind: 'area'}], 1e6, usd),
    ];
    this.slider = element('input', {type: 'range', min: 0, max: 0, value: 0, id: 'moment'});
    this.slider.addEventListener('input', () => this.read());
    this.moment = element('output', {for: 'moment'});
    this.ends = [element('span'), element('span')];
    parent.append(element('div', {class: 'moment'}, element('label', {for: 'moment'}, 'Moment '), this.moment, this.slider,
      element('div', {class: 'ends'}, ...this.ends)));
    this.timeline = null;
  }

  show(timeline) {
    const {minutes, events} = timeline;
    const atEnd = Number(this.slider.value) >= Number(this.slider.max);
    this.timeline = timeline;
    this.slider.max = Math.max(0, minutes.length - 1);
    if (atEnd) this.slider.value = this.slider.max;
    if (minutes.length === 0) return;
    this.to = minutes.at(-1);
    this.from = Math.min(minutes[0], this.to - 60);
    for (const chart of this.charts) chart.show(timeline, this.from, this.to);
    this.charts[0].mark(events, this.from, this.to);
    setText(this.ends[0], clock(this.from * 6e4));
    setText(this.ends[1], `${clock(this.to * 6e4)}, now`);
    this.read();
  }

  read() {
    if (!this.timeline || this.timeline.minutes.length === 0) return;
    const index = Math.min(Number(this.slider.value), this.timeline.minutes.length - 1);
    setText(this.moment, clock(this.timeline.minutes[index] * 6e4));
    this.slider.setAttribute('aria-valuetext', this.moment.textContent);
    for (const chart of this.charts) chart.read(this.timeline, index, this.from, this.to);
  }
}

// The use of a queue, in a cell; drawn again only if the values have changed.
export function sparkline(cell, values) {
  const drawn = values.join();
  if (cell.dataset.drawn === drawn) return;
  cell.dataset.drawn = drawn;
  const most = Math.max(1, ...values);
  const points = values.map((value, index) => `${round((96 * index) / Math.max(1, values.length - 1))},${round(19 - (18 * value) / most)}`).join(' ');
  cell.replaceChildren(svg('svg', {class: 'spark', viewBox: '0 0 96 20', preserveAspectRatio: 'none', role: 'img', 'aria-label': `at most ${gpus(Math.max(0, ...values))} GPUs`},
    svg('polyline', {points, 'vector-effect': 'non-scaling-stroke'})));
}
