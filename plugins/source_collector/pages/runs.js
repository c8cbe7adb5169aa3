// Runs: a list, one of them, two side by side.

import * as api from "./api.js";
import * as format from "./format.js";
import {TimeChart, colourName} from "./charts.js";
import {figures} from "./buckets.js";
import {commandBox, h, icon, notice, replace, tableHead} from "./dom.js";

const POINTS = 200, REFRESH_MS = 5000, MOST_LINES = 2000;

const isEnded = (run) => Boolean(run.finished);
const stateOf = (run) => h("span", {class: "state " + (run.state === "failed" ? "bad" : run.state === "finished" ? "good" : "busy")}, run.state);
const lengthOf = (run) => Math.max(0, (run.finished || api.now()) - run.created);
const zipOf = (run) => `/api/metrics/${encodeURIComponent(run.id)}/?metric_type=run&format=zip`;

function downloadLink(run) {
    return h("a", {class: "button", href: zipOf(run), download: ""}, icon("download"), "Download");
}

// Calls again and again while the page is seen.
function repeat(work) {
    work();
    const timer = setInterval(() => !document.hidden && api.connection() === "ok" && work(), REFRESH_MS);
    return () => clearInterval(timer);
}

// ---- The list --------------------------------------------------------------------------------

export function runs(context) {
    const place = h("section", {"aria-label": "Runs"}), chosen = new Set();
    const button = h("button", {type: "button", class: "button primary", onclick: () => {
        location.hash = context.href(["compare", ...[...chosen].sort((a, b) => a - b).map(String)]);
    }});
    let stop = null, shown = "", isOpen = true;

    function showButton() {
        button.disabled = chosen.size !== 2;
        button.textContent = chosen.size === 2 ? `Compare ${[...chosen].sort((a, b) => a - b).join(" and ")}` : "Choose two to compare";
    }

    function boxOf(run) {
        const box = h("input", {type: "checkbox", "aria-label": `Choose run ${run.id} to compare`, onchange: () => {
            if (box.checked)
                chosen.add(run.id);
            else
                chosen.delete(run.id);
            showButton();
        }});
        box.checked = chosen.has(run.id);
        return box;
    }

    function rowOf(run) {
        return h("tr", {}, h("td", {}, boxOf(run)), h("td", {class: "number muted"}, run.id),
            h("th", {scope: "row"}, h("a", {href: context.href(["run", String(run.id)]), "data-row": ""}, run.name || `run ${run.id}`)),
            h("td", {}, stateOf(run)), h("td", {class: "nowrap"}, format.dateTime(run.created)), h("td", {class: "nowrap number"}, format.duration(lengthOf(run))),
            h("td", {class: "number"}, format.count((run.metrics || []).length)), h("td", {class: "command-cell"}, h("code", {}, run.command || "")));
    }

    async function load() {
        try {
            const list = (await api.get("/api/v1/runs")).runs.sort((a, b) => b.id - a.id);
            const key = JSON.stringify(list) + (list.every(isEnded) ? "" : api.now());
            if (!isOpen || key === shown)
                return;
            shown = key;
            show(list);
        } catch (error) {
            if (isOpen && error.status)
                replace(place, notice("error", "The runs cannot be read", h("p", {}, error.message)));
        }
    }

    function show(list) {
        showButton();
        if (!list.length)
            replace(place, notice("empty", "No runs yet", h("p", {}, "A run is one execution of a program with all its metrics. This makes one:"),
                commandBox(`weir run --mlbench ${location.origin} -- ./your_program`)));
        else if (!place.contains(document.activeElement) || !place.querySelector("table"))
            replace(place, h("div", {class: "row-head"}, h("p", {class: "muted"}, format.plural(list.length, "run")), button),
                h("div", {class: "scroll"}, h("table", {class: "runs"}, tableHead(["", "#id", "name", "state", "created", "#duration", "#metrics",
                    "command"]), h("tbody", {}, list.map(rowOf)))));
    }

    return {title: "Runs", isTimeless: true, element: h("div", {class: "page"}, h("h1", {}, "Runs"), place), open() { stop = repeat(load); }, update() {},
        close() { isOpen = false; stop(); }};
}

// ---- A run's metrics -------------------------------------------------------------------------

async function metricsOf(run, isRecent = false) {
    const found = await api.get(`/api/v1/runs/${encodeURIComponent(run.id)}/metrics`, {points: POINTS, percentiles: isRecent || null});
    const texts = new Map();
    for (const series of found.series)
        texts.set(nameOf(series), series);
    return {...found, byName: texts};
}

function nameOf(series) {
    const labels = Object.entries(series.labels || {}).filter(([key]) => key !== "run_id").sort().map(([key, text]) => `${key}=${text}`).join(" ");
    return [series.group ? `${series.group} ${series.name}` : series.name || String(series.id), labels].filter(Boolean).join(" ");
}

function lineOf(series, label, colour, zero) {
    const points = series.points.filter((point) => typeof point.mean === "number").map((point) => ({x: point.t - zero, y: point.mean}));
    return {label, colour, points, isDots: points.length <= 30};
}

// A small chart of metrics side by side. lines: of lineOf; ends: the times
function chartOf(title, unit, lines, from, to, note, isRelative) {
    const chart = new TimeChart({unit, label: `Chart of ${title}`, isRelative});
    const element = h("article", {class: "panel"}, h("header", {}, h("h3", {title}, title), h("span", {class: "now"}, note)), chart.element);
    return {element, close: () => chart.close(), show: () => chart.show(lines, from, to)};
}

// ---- One run ---------------------------------------------------------------------------------

export function run(context, [id]) {
    const head = h("div", {}), charts = h("section", {"aria-label": "Metrics"}), output = h("section", {"aria-label": "Output"});
    let stop = null, open = [], isOpen = true, shown = "";

    function closeCharts() {
        open.forEach((chart) => chart.close());
        open = [];
    }

    async function load() {
        try {
            const found = await api.get(`/api/v1/runs/${encodeURIComponent(id)}`), one = found.run || found;
            if (!isOpen || (isEnded(one) && shown === JSON.stringify(one)))
                return;
            shown = JSON.stringify(one);
            showHead(one);
            const metrics = await metricsOf(one);
            if (isOpen)
                showCharts(one, metrics);
            await showOutput(one);
        } catch (error) {
            if (isOpen && error.status === 404)
                replace(head, notice("", `There is no run ${id}`, h("p", {}, h("a", {href: context.href(["runs"])}, "All runs"))));
            else if (isOpen && error.status)
                replace(charts, notice("error", "The run cannot be read", h("p", {}, error.message)));
        }
    }

    function showHead(one) {
        const facts = [["created", format.dateTime(one.created)], ["finished", one.finished ? format.dateTime(one.finished) : "running"],
            ["duration", format.duration(lengthOf(one))], ["pods", (one.pods || []).join(", ")], ["command", one.command]].filter(([, text]) => text);
        replace(head, h("div", {class: "row-head"}, h("h1", {}, one.name || `run ${one.id}`, " ", h("small", {class: "muted"}, `#${one.id}`), " ", stateOf(one)),
            downloadLink(one)), h("dl", {class: "run-facts"}, facts.map(([word, text]) => h("div", {}, h("dt", {}, word), h("dd", {}, text)))));
    }

    function showCharts(one, metrics) {
        closeCharts();
        open = [...metrics.byName].map(([name, series]) => {
            const line = lineOf(series, name, 0, 0), times = line.points.map((point) => point.x), unit = format.unitOf(series);
            const from = Math.min(one.created, ...times), to = Math.max(one.finished || api.now(), ...times);
            return chartOf(name, unit, [line], from, to === from ? from + 1 : to, format.value(figures(line.points).last, unit), false);
        });
        replace(charts, h("h2", {class: "section-title"}, "Metrics ", h("span", {class: "muted"}, open.length)), open.length
            ? h("div", {class: "grid"}, open.map((chart) => chart.element)) : h("p", {class: "muted"}, "This run has no metrics yet."));
        open.forEach((chart) => chart.show());
    }

    // The output is of the other API, which keeps it.
    async function showOutput(one) {
        const found = await api.get(`/api/runs/${encodeURIComponent(one.id)}/`), lines = found.job_metadata || {};
        const parts = ["stdout", "stderr"].filter((name) => (lines[name] || []).length);
        replace(output, parts.map((name) => [h("h2", {class: "section-title"}, name, " ", h("span", {class: "muted"}, format.plural(lines[name].length, "line"))),
            h("pre", {class: "output", tabindex: "0"}, lines[name].slice(-MOST_LINES).join("\n"))]));
    }

    return {title: `Run ${id}`, isTimeless: true, element: h("div", {class: "page"}, head, charts, output), open() { stop = repeat(load); }, update() {},
        close() { isOpen = false; stop(); closeCharts(); }};
}

// ---- Two runs --------------------------------------------------------------------------------

export function compare(context, ids) {
    const place = h("section", {"aria-label": "Comparison"});
    let open = [], isOpen = true;

    async function load() {
        try {
            const both = await Promise.all(ids.slice(0, 2).map(async (id) => {
                const found = await api.get(`/api/v1/runs/${encodeURIComponent(id)}`), one = found.run || found;
                return {run: one, metrics: await metricsOf(one)};
            }));
            if (isOpen && both.length === 2)
                show(both);
        } catch (error) {
            if (isOpen && error.status)
                replace(place, notice("error", "These runs cannot be compared", h("p", {}, error.message), h("p", {}, h("a", {href: context.href(["runs"])}, "All runs"))));
        }
    }

    function show(both) {
        const names = [...new Set(both.flatMap((one) => [...one.metrics.byName.keys()]))].sort();
        const rows = names.map((name) => rowOf(name, both));
        open = names.map((name) => overlay(name, both));
        replace(place, h("div", {class: "versus"}, both.map((one, index) => h("p", {}, h("i", {class: "swatch " + colourName(index)}), " ",
            h("a", {href: context.href(["run", String(one.run.id)])}, one.run.name || `run ${one.run.id}`), " ", h("span", {class: "muted"}, `#${one.run.id}`), " ",
            stateOf(one.run), " ", h("span", {class: "muted"}, format.duration(lengthOf(one.run))), " ", downloadLink(one.run)))),
        h("div", {class: "scroll"}, h("table", {class: "compare"}, tableHead(["metric",
            ...both.flatMap((one) => ["latest", "mean"].map((word) => `#${word} of ${one.run.id}`)), "#change of mean"]),
        h("tbody", {}, rows))),
        h("h2", {class: "section-title"}, "Since the start of each run"), h("div", {class: "grid"}, open.map((chart) => chart.element)));
        open.forEach((chart) => chart.show());
    }

    function rowOf(name, both) {
        const all = both.map((one) => {
            const series = one.metrics.byName.get(name);
            return series ? {...figures(lineOf(series, name, 0, 0).points), unit: format.unitOf(series)} : {last: null, mean: null, unit: ""};
        });
        const part = all[0].mean ? (all[1].mean - all[0].mean) / Math.abs(all[0].mean) * 100 : NaN;
        const change = all.some((one) => one.mean === null) || Number.isNaN(part) ? "–" : `${part > 0 ? "+" : part < 0 ? "−" : ""}${format.value(Math.abs(part), "%")}`;
        return h("tr", {}, h("th", {scope: "row"}, name), all.flatMap((one) => [one.last, one.mean].map((value) => h("td", {class: "number"},
            format.value(value, one.unit)))), h("td", {class: "number"}, h("b", {}, change)));
    }

    function overlay(name, both) {
        const lines = [], note = [];
        let to = 1, unit = "";
        both.forEach((one, index) => {
            const series = one.metrics.byName.get(name);
            if (!series)
                return;
            const zero = Math.min(one.run.created, ...series.points.slice(0, 1).map((point) => point.t));
            const line = lineOf(series, `#${one.run.id} ${one.run.name || ""}`, index, zero);
            unit = format.unitOf(series);
            to = Math.max(to, ...line.points.map((point) => point.x));
            note.push(format.value(figures(line.points).last, unit));
            lines.push(line);
        });
        return chartOf(name, unit, lines, 0, to, note.join(" | "), true);
    }

    return {title: `Compare ${ids.join(" and ")}`, isTimeless: true, element: h("div", {class: "page"}, h("h1", {}, "Compare runs"), place), open: load, update() {},
        close() { isOpen = false; open.forEach((chart) => chart.close()); }};
}
