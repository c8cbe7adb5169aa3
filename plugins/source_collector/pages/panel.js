// A panel: a metric's chart with its figures, chosen by its instrument. A board: the panels of a page, loaded and kept up to date.

import * as api from "./api.js";
import * as format from "./format.js";
import * as ranges from "./range.js";
import {Buckets, figures} from "./buckets.js";
import {TimeChart, colourName} from "./charts.js";
import {h, setText} from "./dom.js";

export const MOST_LINES = 8;
const POINTS = 200, SMALL_POINTS = 75, FEWEST_POINTS = 10, MOST_DOTS = 30, MOST_BANDS = 2;

// rate: what was counted per second; band: p50 to p99; line: the values
export function kindOf(series) {
    if (series.instrument === "counter" || (series.cumulative && series.instrument !== "gauge" && series.instrument !== "histogram"))
        return "rate";
    return series.instrument === "histogram" ? "band" : "line";
}


// Those with the most values, when there are more than a chart shows.
export function choose(list, most = MOST_LINES) {
    return list.length <= most ? list : [...list].sort((a, b) => b.count - a.count).slice(0, most).sort((a, b) => a.id - b.id);
}

// options: {title, href, series, small, colours: [..], tag, summary(panel), onload(), context}
// context: {range(), zoom(from, to), back(), marks()}
export class Panel {
    constructor(options) {
        this.options = options;
        this.all = options.series;
        this.series = choose(options.series);
        this.kind = options.kind || kindOf(this.series[0]);
        this.unit = format.unitOf(this.series[0]);
        this.labels = format.labelTexts(this.series);
        this.buckets = new Map(this.series.map((series) => [series.id, new Buckets(series, 1)]));
        this.latest = new Map(this.series.map((series) => [series.id, series.last_value]));
        this.only = null; // the one series that is shown
        this.isVisible = this.isDirty = false;
        this.loadedAt = 0;
        this.loading = null;
        this.shown = null; // the range whose values are there
        this.build();
    }

    ids() {
        return this.series.map((series) => series.id);
    }

    // ---- Elements

    build() {
        const {title, href, small, context, help} = this.options;
        const isWide = this.series.length > 1 && !small;
        this.now = h("span", {class: "now"});
        this.problem = h("p", {class: "problem-text", hidden: true});
        this.chart = new TimeChart({unit: this.unit, isRate: this.kind === "rate", fromZero: this.kind !== "line", small,
            label: `Chart of ${title}`, onzoom: (from, to) => context.zoom(from, to), onback: () => context.back()});
        this.plot = h("div", {class: "plot-box"}, this.chart.element, this.problem);
        this.rows = isWide ? this.series.map((series, index) => this.legendRow(index)) : [];
        this.legend = isWide ? h("div", {class: "legend", role: "list"}, this.rows.map((row) => row.element)) : null;
        const name = h("h3", {title: help || this.series[0].help || null}, href ? h("a", {href, "data-row": ""}, title) : title);
        this.element = h("article", {class: "panel" + (small ? " small" : "")},
            h("header", {}, name, h("span", {class: "tag"}, this.options.tag ?? this.kindText()), this.now),
            this.plot, this.legend, this.rest());
    }

    // Bands of many series would cover each other.
    kindText() {
        return this.kind === "rate" ? "rate" : this.kind === "line" ? "" : this.series.length <= MOST_BANDS ? "p50 – p99" : "p99";
    }

    rest() {
        const hidden = this.all.length - this.series.length;
        return hidden > 0 ? h("p", {class: "more"}, `${this.series.length} of ${this.all.length} series, those with the most values`) : null;
    }

    colourOf(index) {
        const given = this.options.colours;
        return given ? given[index % given.length] : index;
    }

    legendRow(index) {
        const last = h("span", {class: "figure"}), mean = h("span", {class: "figure"}), max = h("span", {class: "figure"});
        const name = this.labels[index] || this.series[index].name;
        const button = h("button", {type: "button", "aria-pressed": "false", title: `Show only ${name}`, onclick: () => this.isolate(index)},
            h("i", {class: "swatch " + colourName(this.colourOf(index))}), h("span", {class: "name"}, name));
        return {element: h("div", {class: "legend-row", role: "listitem"}, button, last, mean, max), button, last, mean, max};
    }

    isolate(index) {
        this.only = this.only === index ? null : index;
        this.rows.forEach((row, at) => {
            row.button.setAttribute("aria-pressed", String(this.only === at));
            row.element.classList.toggle("off", this.only !== null && this.only !== at);
        });
        this.draw();
    }

    // ---- Data

    async load() {
        if (this.loading)
            this.loading.abort();
        const abort = this.loading = new AbortController();
        const range = this.options.context.range(), {from, to} = ranges.bounds(range);
        const step = format.bucketStep(to - from, this.options.small ? SMALL_POINTS : POINTS);
        const start = Math.floor(from / step) * step, points = Math.max(FEWEST_POINTS, Math.round((Math.ceil(to / step) * step - start) / step));
        this.loadedAt = api.now();
        this.step = step;
        try {
            const found = await api.get("/api/v1/range", {series: this.ids().join(","), from: round(start), to: round(start + points * step), points},
                abort.signal);
            this.shown = JSON.stringify(range);
            this.take(found, step);
            this.fail(null);
        } catch (error) {
            if (error.name !== "AbortError")
                this.fail(error);
        }
        if (this.loading === abort)
            this.loading = null;
    }

    take(found, step) {
        this.isRaw = found.series.length > 0 && found.series.every((series) => series.raw);
        for (const series of found.series) {
            const buckets = this.buckets.get(series.id);
            if (buckets)
                buckets.set(series.points, found.step || step);
        }
        this.draw();
        if (this.options.onload)
            this.options.onload();
    }

    fail(error) {
        this.problem.hidden = !error;
        setText(this.problem, error ? `No data: ${error.message}` : "");
    }

    push(id, time, value) {
        const buckets = this.buckets.get(id);
        if (!buckets)
            return;
        this.latest.set(id, value);
        buckets.add(time, value);
        this.isDirty = true;
    }

    // ---- Drawing

    draw() {
        const {from, to} = ranges.bounds(this.options.context.range());
        const lines = this.series.map((series, index) => this.lineOf(index, from, to)).filter((line, index) =>
            this.only === null || this.only === index);
        this.isDirty = false;
        this.chart.show(lines, from, to, this.options.context.marks());
        this.showFigures();
    }

    lineOf(index, from, to) {
        const buckets = this.buckets.get(this.series[index].id);
        const line = {label: this.labels[index] || this.series[index].name, colour: this.colourOf(index), index};
        buckets.trim(from);
        if (this.kind === "rate")
            return {...line, points: buckets.rates(from, to, api.now()), isFilled: this.series.length === 1};
        if (this.kind === "band" && !this.isRaw)
            return {...line, points: buckets.line("p99"), low: this.series.length <= MOST_BANDS ? buckets.line("p50") : null};
        const points = buckets.line("mean"), isSpread = !this.isRaw && this.series.length <= 3;
        return isSpread ? {...line, points, low: buckets.line("min"), high: buckets.line("max"), isBandOnly: true}
            : {...line, points, isDots: points.length <= MOST_DOTS || (this.kind === "band" && points.length <= POINTS)};
    }

    points(index) {
        const {from, to} = ranges.bounds(this.options.context.range()), buckets = this.buckets.get(this.series[index].id);
        if (this.kind === "rate")
            return buckets.rates(from, to, api.now());
        return this.kind === "band" && !this.isRaw ? buckets.line("p99") : buckets.line("mean");
    }

    // What was counted within the range; null while that is not known of all series.
    counted() {
        const range = this.options.context.range(), {from, to} = ranges.bounds(range);
        if (this.shown !== JSON.stringify(range) || this.series.length < this.all.length)
            return null;
        return this.series.reduce((sum, series) => sum + this.buckets.get(series.id).counted(from, to), 0);
    }

    showFigures() {
        const text = (value) => (this.kind === "rate" ? format.rate(value, this.unit) : format.value(value, this.unit));
        const all = this.series.map((series, index) => figures(this.points(index)));
        this.rows.forEach((row, index) => {
            setText(row.last, text(this.kind === "line" ? this.latestOf(index, all) : all[index].last));
            setText(row.mean, `mean ${text(all[index].mean)}`);
            setText(row.max, `max ${text(all[index].max)}`);
        });
        setText(this.now, this.nowText(all, text));
        this.chart.canvas.setAttribute("aria-label", this.words(all, text));
    }

    nowText(all, text) {
        if (this.options.summary)
            return this.options.summary(this);
        if (this.kind === "rate")
            return text(all.reduce((sum, one) => sum + (one.last || 0), 0));
        if (this.series.length > 1)
            return "";
        const buckets = this.buckets.get(this.series[0].id), last = buckets.points[buckets.points.length - 1];
        if (this.kind === "band" && last && typeof last.p99 === "number")
            return `${format.value(last.p50, this.unit)} – ${format.value(last.p99, this.unit)}`;
        return text(this.latestOf(0, all));
    }

    // The latest value of all, or of the time that is shown.
    latestOf(index, all) {
        return ranges.isLive(this.options.context.range()) ? this.latest.get(this.series[index].id) : all[index].last;
    }

    words(all, text) {
        const each = all.slice(0, 4).map((one, index) => `${this.labels[index] || this.series[index].name}: latest ${text(one.last)}, `
            + `mean ${text(one.mean)}, highest ${text(one.max)}`);
        return `Chart of ${this.options.title} (${this.kind === "rate" ? "per second" : this.kind === "band" ? "99th percentile" : "values"}). `
            + each.join("; ");
    }

    close() {
        if (this.loading)
            this.loading.abort();
        this.chart.close();
    }
}

function round(time) {
    return Number(time.toFixed(6));
}

// ---- A board ---------------------------------------------------------------------------------

const TICK_MS = 500, FRESH_SECONDS = 15, LOADERS = 3;
const MOST_IDS = 100; // of /api/v1/live

export class Board {
    // context: as of a panel; live: {group} or null (the panels' series); on: {series(), status(), values(list)}
    constructor(context, live, on = {}) {
        this.context = context;
        this.liveParameters = live;
        this.on = on;
        this.panels = [];
        this.byId = new Map();
        this.queue = [];
        this.running = 0;
        this.live = null;
        this.observer = new IntersectionObserver((entries) => this.see(entries), {rootMargin: "200px"});
        this.timer = setInterval(() => this.tick(), TICK_MS);
    }

    add(panel) {
        this.panels.push(panel);
        for (const id of panel.ids())
            this.byId.set(id, [...(this.byId.get(id) || []), panel]);
        panel.element.panel = panel;
        this.observer.observe(panel.element);
        return panel;
    }

    clear() {
        for (const panel of this.panels) {
            this.observer.unobserve(panel.element);
            panel.close();
        }
        this.panels = [];
        this.byId.clear();
        this.queue = [];
    }

    see(entries) {
        for (const entry of entries) {
            const panel = entry.target.panel;
            panel.isVisible = entry.isIntersecting;
            if (panel.isVisible && !panel.loadedAt)
                this.load(panel);
        }
        if (this.key && this.byId.size > MOST_IDS)
            this.connect();
    }

    // Those that are seen come first, if there are more than may be asked for.
    liveIds() {
        const panels = [...this.panels].sort((a, b) => Boolean(b.isVisible) - Boolean(a.isVisible));
        const ids = new Set(panels.flatMap((panel) => [...panel.ids()]));
        return [...ids].slice(0, MOST_IDS).sort((a, b) => a - b);
    }

    load(panel) {
        if (!this.queue.includes(panel))
            this.queue.push(panel);
        this.work();
    }

    async work() {
        while (this.running < LOADERS && this.queue.length) {
            const panel = this.queue.shift();
            this.running++;
            panel.load().finally(() => {
                this.running--;
                this.work();
            });
        }
    }

    // Loads all again, those that are seen at once.
    reload() {
        for (const panel of this.panels) {
            panel.loadedAt = 0;
            if (panel.isVisible)
                this.load(panel);
        }
        this.connect();
    }

    connect() {
        const isWanted = ranges.isLive(this.context.range()) && (this.liveParameters || this.panels.length);
        const parameters = this.liveParameters || {series: this.liveIds().join(",")};
        const key = isWanted ? JSON.stringify(parameters) : "";
        if (key === this.key)
            return;
        this.key = key;
        if (this.live)
            this.live.close();
        this.live = isWanted ? new api.Live(parameters, {
            values: (list) => this.push(list), back: () => this.reload(), lost: () => this.reload(),
            series: () => this.on.series && this.on.series(), status: () => this.on.status && this.on.status()}) : null;
    }

    push(list) {
        for (const [id, time, value] of list)
            for (const panel of this.byId.get(id) || [])
                panel.push(id, time, value);
        if (this.on.values)
            this.on.values(list);
    }

    tick() {
        if (document.hidden || !ranges.isLive(this.context.range()))
            return;
        for (const panel of this.panels.filter((one) => one.isVisible && one.loadedAt && !one.loading)) {
            const step = panel.step || 1, age = api.now() - panel.loadedAt;
            if (age > Math.max(FRESH_SECONDS, 5 * step) && api.connection() === "ok")
                this.load(panel);
            else if (panel.isDirty || api.now() - (panel.drawnAt || 0) >= Math.max(1, step)) {
                panel.drawnAt = api.now();
                panel.draw();
            }
        }
    }

    close() {
        clearInterval(this.timer);
        this.observer.disconnect();
        this.clear();
        if (this.live)
            this.live.close();
        this.live = null;
    }
}

// ---- What prof measured ----------------------------------------------------------------------

// Splits the names of a group: what was timed (X.duration.ms with X.success and X.failure), and the others.
export function splitTimed(byName) {
    const timed = [], others = [];
    for (const name of byName.keys()) {
        const base = /^(.*)\.duration\.ms$/.exec(name);
        if (base && (byName.has(base[1] + ".success") || byName.has(base[1] + ".failure")))
            timed.push(base[1]);
    }
    const isPart = (name) => timed.some((base) => [".duration.ms", ".success", ".failure"].some((part) => name === base + part));
    for (const name of byName.keys())
        if (!isPart(name))
            others.push(name);
    return {timed, others};
}

export function groupByName(list) {
    const byName = new Map();
    for (const series of list)
        byName.set(series.name, [...(byName.get(series.name) || []), series]);
    return byName;
}

// A row of rate, errors and duration.
export function timedRow(base, byName, context, hrefOf) {
    const success = byName.get(base + ".success") || [], failure = byName.get(base + ".failure") || [];
    const panels = [];
    let errors = null;
    const rate = success.length ? new Panel({title: "Rate", tag: "successes", series: success, context, href: hrefOf(base + ".success"),
        onload: () => errors && errors.showFigures()}) : null;
    const share = (panel) => {
        const failed = panel.counted(), succeeded = rate ? rate.counted() : 0;
        return failed === null || succeeded === null ? "" : `${format.percent(failed, failed + succeeded)} of calls`;
    };
    if (rate)
        panels.push(rate);
    if (failure.length)
        panels.push(errors = new Panel({title: "Errors", tag: "failures", series: failure, context, summary: share, href: hrefOf(base + ".failure"),
            colours: failure.length === 1 ? ["bad"] : null}));
    panels.push(new Panel({title: "Duration", series: byName.get(base + ".duration.ms"), context, href: hrefOf(base + ".duration.ms")}));
    return {element: h("section", {class: "timed", "aria-label": base}, h("h3", {class: "timed-title"}, base),
        h("div", {class: "grid three"}, panels.map((panel) => panel.element))), panels};
}
