// One chart, drawn by Chart.js: lines and bands over time, marks, a hair cross, and zooming by dragging.

import * as format from "./format.js";
import {h, replace} from "./dom.js";

const COLOURS = 8;
const NEAR_PIXELS = 6;

let palette = null;

function colours() {
    if (!palette) {
        const style = getComputedStyle(document.documentElement);
        const get = (name) => style.getPropertyValue(name).trim();
        palette = {series: [], text: get("--muted"), grid: get("--grid"), good: get("--good"), bad: get("--bad"), mark: get("--mark")};
        for (let i = 0; i < COLOURS; i++)
            palette.series.push(get(`--series-${i}`));
    }
    return palette;
}

export function forgetColours() {
    palette = null;
}

export function colour(index) {
    return typeof index === "number" ? colours().series[index % COLOURS] : colours()[index];
}

export const colourName = (index) => (typeof index === "number" ? `series-${index % COLOURS}` : index);

function faint(text, part) {
    const match = /^#(..)(..)(..)$/.exec(text);
    return match ? `rgba(${match.slice(1).map((hex) => parseInt(hex, 16)).join(",")},${part})` : text;
}

// ---- All charts share the time under the pointer ---------------------------------------------

const charts = new Set();
let hovered = null;

function hover(time, chart, event) {
    hovered = time;
    for (const other of charts)
        other.showCross(time);
    showTip(time === null ? null : chart, event);
}

export const hoveredTime = () => hovered;

function showTip(chart, event) {
    const tip = document.getElementById("tip");
    const rows = chart ? chart.readout(hovered) : [];
    const marks = chart ? chart.marksNear(hovered) : [];
    tip.hidden = !rows.length && !marks.length;
    if (tip.hidden)
        return;
    replace(tip, h("div", {class: "when"}, format.dateTime(hovered, chart.span() < 60 ? 3 : 0)),
        rows.map((row) => h("div", {class: "row"}, h("i", {class: "swatch " + row.colour}), h("span", {class: "name"}, row.label),
            h("b", {}, row.text))),
        marks.map((mark) => h("div", {class: "row mark"}, mark.text)));
    const width = tip.offsetWidth, height = tip.offsetHeight, gap = 14;
    const left = event.clientX + gap + width > innerWidth ? Math.max(4, event.clientX - gap - width) : event.clientX + gap;
    tip.style.left = `${left}px`;
    tip.style.top = `${Math.max(4, Math.min(event.clientY + gap, innerHeight - height - 4))}px`;
}

// ---- A chart ---------------------------------------------------------------------------------

// lines: [{label, colour, points: [{x, y}], low: points?, digits: text => text, isFaint, isDots}]; low: the lower edge of a band
export class TimeChart {
    // options: {unit, isRate, fromZero, small, label, onzoom(from, to), onback(), isRelative}
    constructor(options) {
        this.options = options;
        this.lines = [];
        this.marks = [];
        this.from = this.to = 0;
        this.chart = null;
        this.canvas = h("canvas", {role: "img", "aria-label": options.label});
        this.cross = h("div", {class: "cross", hidden: true});
        this.selection = h("div", {class: "selection", hidden: true});
        this.element = h("div", {class: "plot" + (options.small ? " small" : "")}, this.canvas, this.cross, this.selection);
        this.watchPointer();
        charts.add(this);
    }

    close() {
        charts.delete(this);
        if (this.chart)
            this.chart.destroy();
        this.chart = null;
    }

    span() {
        return this.to - this.from;
    }

    // Draws. Chart.js measures the element, which must be in the page.
    show(lines, from, to, marks = []) {
        this.lines = lines;
        this.marks = marks;
        this.from = from;
        this.to = to;
        if (!this.element.isConnected)
            return;
        const datasets = lines.flatMap((line) => this.datasetsOf(line));
        if (!this.chart) {
            this.chart = new Chart(this.canvas, {type: "line", data: {datasets}, options: this.chartOptions(), plugins: [{
                id: "marks", beforeDatasetsDraw: (chart) => this.drawMarks(chart)}]});
        } else {
            this.chart.data.datasets = datasets;
            this.chart.options.scales = this.scales();
            this.chart.update("none");
        }
        this.showCross(hovered);
    }

    recolour() {
        this.show(this.lines, this.from, this.to, this.marks);
    }

    // ---- What Chart.js is given

    datasetsOf(line) {
        const main = colour(line.colour);
        const base = {parsing: false, normalized: true, borderColor: main, borderWidth: this.options.small ? 1.4 : 1.6, pointHitRadius: 0,
            pointRadius: line.isDots || line.points.length === 1 ? 2.2 : 0, pointBackgroundColor: main, pointBorderWidth: 0,
            spanGaps: gapOf(line.points), borderJoinStyle: "round"};
        const top = {...base, data: line.points};
        if (!line.low)
            return [line.isFilled ? {...top, fill: "origin", backgroundColor: faint(main, 0.12)} : {...top, fill: false}];
        const edge = {...base, borderWidth: line.isBandOnly ? 0 : 1, pointRadius: 0, borderColor: faint(main, 0.75)};
        return [{...edge, data: line.high || line.points, fill: false, borderWidth: line.isBandOnly ? 0 : 1.2},
            {...edge, data: line.low, fill: "-1", backgroundColor: faint(main, 0.16), borderWidth: line.isBandOnly ? 0 : base.borderWidth,
                borderColor: main}, ...(line.isBandOnly ? [{...top, fill: false}] : [])];
    }

    chartOptions() {
        return {animation: false, responsive: true, maintainAspectRatio: false, events: [], interaction: {mode: "nearest"},
            layout: {padding: {top: 6, right: 4}}, plugins: {legend: {display: false}, tooltip: {enabled: false}}, scales: this.scales()};
    }

    scales() {
        const {text, grid} = colours(), small = this.options.small;
        const font = {size: 11, family: "system-ui, sans-serif"};
        const range = this.heights(), {min, max} = range;
        return {
            x: {type: "linear", min: this.from, max: this.to, grid: {color: grid, drawBorder: false, drawTicks: false},
                afterBuildTicks: (axis) => { axis.ticks = this.timeTicks(axis); },
                ticks: {color: text, font, autoSkip: false, maxRotation: 0, padding: 4, callback: (value, index, all) => all[index].words,
                    display: true}},
            y: {min, max, grid: {color: grid, drawBorder: false, drawTicks: false}, afterFit: (axis) => { axis.width = Math.max(axis.width, small ? 44 : 56); },
                ticks: {color: text, font, padding: 6, includeBounds: false, maxTicksLimit: small ? 4 : 6, stepSize: range.step,
                    callback: (value) => this.text(value)}},
        };
    }

    timeTicks(axis) {
        const most = Math.max(2, Math.floor(axis.width / 74));
        if (this.options.isRelative)
            return relativeTicks(this.from, this.to, most);
        return format.ticks(this.from, this.to, most).map(({value, step}) => ({value, words: format.tick(value, step)}));
    }

    // The lowest and highest value, with some room; 0 belongs to it if it is near.
    heights() {
        let low = Infinity, high = -Infinity;
        for (const line of this.lines)
            for (const points of [line.points, line.low, line.high])
                for (const point of points || [])
                    if (point.x >= this.from && point.x <= this.to) {
                        low = Math.min(low, point.y);
                        high = Math.max(high, point.y);
                    }
        if (low > high)
            return {min: 0, max: 1};
        if (low >= 0 && (this.options.fromZero || low < high * 0.6))
            low = 0;
        if (low === high)
            return low === 0 ? {min: 0, max: 1} : {min: low === 0 ? 0 : low - Math.abs(low) * 0.1, max: high + Math.abs(high) * 0.1};
        const room = (high - low) * 0.06;
        return this.roundBytes({min: low === 0 ? 0 : low - room, max: high + room});
    }

    // Ticks of bytes are round in powers of two.
    roundBytes(range) {
        const height = (range.max - range.min) / (this.options.small ? 2 : 4), step = 2 ** Math.ceil(Math.log2(height));
        if (!format.isBytes(this.options.unit) || height < 1024)
            return range;
        return {min: Math.floor(range.min / step) * step, max: Math.ceil(range.max / step) * step, step};
    }

    text(value) {
        return this.options.isRate ? format.rate(value, this.options.unit) : format.value(value, this.options.unit);
    }

    drawMarks(chart) {
        const {ctx, chartArea: area, scales} = chart;
        ctx.save();
        ctx.setLineDash([3, 3]);
        ctx.lineWidth = 1;
        for (const mark of this.marks.filter((one) => one.t >= this.from && one.t <= this.to)) {
            const x = Math.round(scales.x.getPixelForValue(mark.t)) + 0.5;
            ctx.strokeStyle = mark.kind === "run_failed" || mark.kind === "sender_left" ? colour("bad") : colour("mark");
            ctx.beginPath();
            ctx.moveTo(x, area.top);
            ctx.lineTo(x, area.bottom);
            ctx.stroke();
        }
        ctx.restore();
    }

    // ---- What is under the pointer

    readout(time) {
        const found = [];
        for (const line of this.lines) {
            const top = nearest(line.high || line.points, time), low = line.low ? nearest(line.low, time) : null;
            const middle = line.isBandOnly ? nearest(line.points, time) : null;
            if (top === null)
                continue;
            const words = (point) => this.text(point.y);
            found.push({colour: colourName(line.colour), label: line.label, y: top.y,
                text: low === null ? words(top) : middle ? `${words(middle)}  (${words(low)} – ${words(top)})`
                    : `p50 ${words(low)}  p99 ${words(top)}`});
        }
        return found.sort((a, b) => b.y - a.y).slice(0, 12);
    }

    marksNear(time) {
        if (!this.chart)
            return [];
        const near = this.span() * NEAR_PIXELS / Math.max(1, this.chart.chartArea.width);
        return this.marks.filter((mark) => Math.abs(mark.t - time) <= near);
    }

    showCross(time) {
        const scale = this.chart && this.chart.scales.x;
        this.cross.hidden = time === null || !scale || time < this.from || time > this.to;
        if (this.cross.hidden)
            return;
        const {top, bottom} = this.chart.chartArea;
        Object.assign(this.cross.style, {left: `${scale.getPixelForValue(time)}px`, top: `${top}px`, height: `${bottom - top}px`});
    }

    // ---- The pointer

    watchPointer() {
        const plot = this.element;
        let start = null;
        const timeAt = (event) => this.timeAt(event);
        plot.addEventListener("pointerdown", (event) => {
            if (event.button !== 0 || !this.options.onzoom || !this.chart || timeAt(event) === null)
                return;
            start = event.clientX;
            plot.setPointerCapture(event.pointerId);
        });
        plot.addEventListener("pointermove", (event) => {
            const time = timeAt(event);
            hover(time, this, event);
            if (start !== null)
                this.select(start, event.clientX);
        });
        const end = (event, isTaken) => {
            const from = start;
            start = null;
            this.selection.hidden = true;
            if (!isTaken || from === null || Math.abs(event.clientX - from) <= NEAR_PIXELS)
                return;
            hover(null, this, event);
            this.options.onzoom(...this.timesBetween(from, event.clientX));
        };
        plot.addEventListener("pointerup", (event) => end(event, true));
        plot.addEventListener("pointercancel", (event) => end(event, false));
        plot.addEventListener("pointerleave", (event) => hover(null, this, event));
        plot.addEventListener("dblclick", () => this.options.onback && this.options.onback());
        plot.cancelDrag = () => {
            const was = start !== null;
            start = null;
            this.selection.hidden = true;
            return was;
        };
    }

    timeAt(event) {
        if (!this.chart)
            return null;
        const x = event.clientX - this.canvas.getBoundingClientRect().left, {left, right} = this.chart.chartArea;
        return x < left || x > right ? null : this.chart.scales.x.getValueForPixel(x);
    }

    timesBetween(one, other) {
        const {left, right} = this.chart.chartArea, edge = this.canvas.getBoundingClientRect().left;
        return [Math.min(one, other), Math.max(one, other)].map((x) =>
            this.chart.scales.x.getValueForPixel(Math.max(left, Math.min(right, x - edge))));
    }

    select(one, other) {
        const {left, right, top, bottom} = this.chart.chartArea, edge = this.canvas.getBoundingClientRect().left;
        const [from, to] = [Math.min(one, other), Math.max(one, other)].map((x) => Math.max(left, Math.min(right, x - edge)));
        Object.assign(this.selection.style, {left: `${from}px`, width: `${to - from}px`, top: `${top}px`, height: `${bottom - top}px`});
        this.selection.hidden = false;
    }
}

// A line is interrupted where nothing came for much longer than usual.
function gapOf(points) {
    if (points.length < 3)
        return true;
    const gaps = [];
    for (let i = 1; i < points.length; i++)
        gaps.push(points[i].x - points[i - 1].x);
    gaps.sort((a, b) => a - b);
    return gaps[Math.floor(gaps.length * 0.75)] * 4;
}

function nearest(points, time) {
    let low = 0, high = points.length - 1;
    if (high < 0)
        return null;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (points[middle].x < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && time - points[low - 1].x < points[low].x - time ? points[low - 1] : points[low];
}

function relativeTicks(from, to, most) {
    const found = [], step = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400].find((size) => (to - from) / size <= most)
        || (to - from) / most;
    for (let at = Math.ceil(from / step) * step; at <= to; at += step)
        found.push({value: at, words: at === 0 ? "0" : "+" + format.duration(at)});
    return found;
}

export function recolourAll() {
    forgetColours();
    for (const chart of charts)
        chart.recolour();
}
