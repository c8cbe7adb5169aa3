// The first page: what is wrong or lost, in words, worst first; then the groups.

import * as api from "./api.js";
import * as format from "./format.js";
import {Board, Panel, groupByName, kindOf, splitTimed} from "./panel.js";
import {commandBox, h, icon, replace, tableHead} from "./dom.js";

const REFRESH_MS = 5000, MOST_CARDS = 12, CARD_PANELS = 2, CARD_SERIES = 200;
const COMMAND = "WEIR_CONFIG='{\"groups\":{\"*\":\"forward\"}}' ./your_program";

export function overview(context) {
    const health = h("section", {class: "health", "aria-label": "What is wrong or lost"}), groups = h("section", {"aria-label": "Groups"});
    const board = new Board(context, null, {status: refresh});
    let shown = "", mostCards = MOST_CARDS, timer = 0, isOpen = true;

    async function refresh() {
        try {
            const [status, list] = await Promise.all([api.status(), api.get("/api/v1/groups")]);
            if (isOpen) {
                showHealth(health, status);
                await showGroups(list.groups);
            }
        } catch (error) {
            if (isOpen && error.status > 0 && error.status !== 401 && error.status !== 403)
                replace(health, problemOf({severity: "error", where: "this page", text: error.message}));
        }
    }

    async function showGroups(list) {
        list = [...list].sort((a, b) => (b.last || 0) - (a.last || 0) || compareText(a.group, b.group));
        const kept = list.slice(0, mostCards).sort((a, b) => compareText(a.group, b.group));
        const key = JSON.stringify(kept.map((one) => [one.group, one.series]));
        if (!list.length)
            replace(groups, emptyState());
        if (key === shown || !list.length) {
            showAges(groups, kept);
            return;
        }
        shown = key;
        board.clear();
        const cards = await Promise.all(kept.map((one) => cardOf(one, context)));
        if (!isOpen)
            return;
        replace(groups, h("h2", {class: "section-title"}, "Groups ", h("span", {class: "muted"}, format.count(list.length))),
            h("div", {class: "cards"}, cards.map((card) => card.element)),
            list.length > kept.length ? h("button", {type: "button", class: "button", onclick: () => { mostCards = Infinity; refresh(); }},
                `Show all ${list.length} groups`) : null);
        cards.flatMap((card) => card.panels).forEach((panel) => board.add(panel));
        board.connect();
        showAges(groups, kept);
    }

    return {
        title: "", element: h("div", {class: "page overview"}, h("h1", {class: "sr"}, "Overview"), health, groups),
        open() {
            refresh();
            timer = setInterval(() => !document.hidden && api.connection() === "ok" && refresh(), REFRESH_MS);
            context.loadMarks();
        },
        update() {
            context.loadMarks().then(() => board.reload());
        },
        close() {
            isOpen = false;
            clearInterval(timer);
            board.close();
        },
    };
}

const compareText = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

// ---- What is wrong or lost -------------------------------------------------------------------

function showHealth(place, status) {
    const open = new Set([...place.querySelectorAll("details[open]")].map((details) => details.dataset.name));
    const problems = status.problems || [], ledger = sumOf(status.handlers || []);
    const details = [
        detailsOf("handlers", "Handlers", handlerRows(status.handlers || [])),
        detailsOf("sources", "Sources", sourceRows(status.sources || [])),
        detailsOf("senders", "Senders", senderRows(status.senders || [])),
    ].filter(Boolean);
    for (const one of details)
        one.open = open.has(one.dataset.name);
    replace(place, problems.length ? problems.map(problemOf) : null, verdict(ledger, problems, status),
        h("div", {class: "details"}, details));
}

const sum = (values) => Object.values(values || {}).reduce((total, value) => total + value, 0);

function sumOf(handlers) {
    const total = {added: 0, delivered: 0, dropped: 0, waiting: 0};
    for (const one of handlers) {
        total.added += (one.offered || 0) + (one.recovered || 0);
        total.delivered += one.delivered || 0;
        total.dropped += sum(one.dropped);
    }
    total.waiting = total.added - total.delivered - total.dropped;
    return total;
}

function problemOf(problem) {
    const isError = problem.severity === "error";
    return h("div", {class: "problem " + (isError ? "error" : "warning")}, icon(isError ? "error" : "warning"),
        h("p", {}, h("b", {}, problem.where), " ", h("span", {}, problem.text)));
}

// The sum of all handlers in one sentence.
function verdict(ledger, problems, status) {
    const waiting = ledger.waiting > 0 ? ` + ${format.count(ledger.waiting)} on their way` : "";
    const equation = `${format.count(ledger.added)} added = ${format.count(ledger.delivered)} delivered`;
    const store = status.store ? h("span", {class: "muted store"}, storeText(status)) : null;
    if (ledger.dropped > 0)
        return h("div", {class: "verdict lost"}, icon("error"), h("p", {}, h("b", {}, `${format.count(ledger.dropped)} lost: `),
            `${equation} + ${format.count(ledger.dropped)} dropped${waiting}`), store);
    const errors = problems.filter((one) => one.severity === "error").length;
    if (errors) // such as values that a sender has lost, which no handler counts
        return h("div", {class: "verdict lost"}, icon("error"), h("p", {}, h("b", {}, `${format.plural(errors, "error", "errors")}: `),
            equation + waiting), store);
    return h("div", {class: "verdict " + (problems.length ? "" : "fine")}, icon("check"), h("p", {}, h("b", {}, "Nothing is lost: "),
        equation + waiting), store);
}

function storeText(status) {
    const store = status.store;
    return `${format.count(store.values)} values of ${format.plural(store.series, "series", "series")} stored, ${format.value(store.size_bytes, "bytes")}`
        + ` · running for ${format.duration(Math.max(0, api.now() - status.started))} · weir ${status.version}`;
}

// ---- The ledgers -----------------------------------------------------------------------------

function detailsOf(name, title, table) {
    return table && h("details", {"data-name": name}, h("summary", {}, title, " ", h("span", {class: "muted"}, table.note)),
        h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": title}, table.element));
}

function tableOf(headings, rows, note) {
    const cell = (value, index) => h(index ? "td" : "th", {scope: index ? null : "row", class: headings[index].startsWith("#") ? "number" : null},
        value instanceof Node ? value : format.count(value));
    return rows.length ? {note, element: h("table", {}, tableHead(headings),
        h("tbody", {}, rows.map((row) => h("tr", {class: row.bad ? "bad" : null}, row.cells.map(cell)))))} : null;
}

const isBad = (state) => ["failed", "failing", "full", "stalled", "stopped", "vanished"].includes(state);
const stateOf = (one) => h("span", {class: "state" + (isBad(one.state) ? " bad" : "")}, one.state || "");

function dropText(dropped) {
    const reasons = Object.entries(dropped || {}).filter(([, number]) => number);
    return reasons.length ? reasons.map(([reason, number]) => `${format.count(number)} ${reason}`).join(", ") : 0;
}

function handlerRows(list) {
    const rows = [...list].sort((a, b) => sum(b.dropped) - sum(a.dropped)).map((one) => ({bad: sum(one.dropped) > 0 || Boolean(one.problem), cells:
        [one.name, one.type, stateOf(one), (one.offered || 0) + (one.recovered || 0), one.delivered, dropText(one.dropped),
            (one.queued || 0) + (one.spooled || 0) + (one.summing || 0), one.retries, one.problem || ""]}));
    return tableOf(["handler", "type", "state", "#added", "#delivered", "#dropped", "#waiting", "#retries", "problem"], rows,
        listNote(list, (one) => sum(one.dropped), "dropped"));
}

function sourceRows(list) {
    const lost = (one) => (one.lost || 0) + (one.refused || 0) + (one.bad_lines || 0);
    const rows = [...list].sort((a, b) => lost(b) - lost(a)).map((one) => ({bad: lost(one) > 0 || Boolean(one.problem), cells:
        [one.name, one.type, stateOf(one), one.added, one.refused, one.bad_lines, one.lost, one.problem || ""]}));
    return tableOf(["source", "type", "state", "#added", "#refused", "#bad lines", "#lost", "problem"], rows, listNote(list, lost, "lost or refused"));
}

function senderRows(list) {
    const lost = (one) => (one.lost || 0) + (one.missing || 0);
    const rows = [...list].sort((a, b) => lost(b) - lost(a)).map((one) => ({bad: lost(one) > 0 || Boolean(one.problem), cells:
        [one.name, one.source, stateOf(one), one.processes, one.added, one.delivered, one.received,
            one.at_least && lost(one) ? `at least ${format.count(lost(one))}` : lost(one), one.problem || ""]}));
    return tableOf(["sender", "source", "state", "#processes", "#added", "#delivered", "#received", "#lost", "problem"], rows, listNote(list, lost, "lost"));
}

function listNote(list, lost, word) {
    const number = list.reduce((total, one) => total + lost(one), 0);
    return `${list.length} · ${number ? `${format.count(number)} ${word}` : `0 ${word}`}`;
}

// ---- Groups ----------------------------------------------------------------------------------

function emptyState() {
    return h("section", {class: "notice empty"}, h("h2", {}, "No values yet"),
        h("p", {}, "Run a program that uses weir with this configuration; its values appear here as they come:"), commandBox(COMMAND),
        h("p", {class: "muted"}, "Or let ", h("code", {}, "weir run -- ./your_program"), " measure one that does not."));
}

function showAges(place, list) {
    for (const one of list)
        for (const age of place.querySelectorAll(".age"))
            if (age.dataset.group === one.group)
                age.textContent = format.ago(one.last, api.now());
}

// What says most about a group: what was timed, then counters, histograms, values.
function pick(list) {
    const byName = groupByName(list), {timed} = splitTimed(byName);
    const order = {rate: 0, band: 1, line: 2};
    const names = timed.flatMap((base) => [base + ".success", base + ".duration.ms"]).filter((name) => byName.has(name));
    const others = [...byName.keys()].filter((name) => !names.includes(name) && !name.endsWith(".failure"))
        .sort((a, b) => order[kindOf(byName.get(a)[0])] - order[kindOf(byName.get(b)[0])]);
    return [...names, ...others].slice(0, CARD_PANELS).map((name) => byName.get(name));
}

async function cardOf(one, context) {
    let list = [];
    try {
        list = (await api.get("/api/v1/series", {group: one.group, limit: CARD_SERIES})).series;
    } catch (error) { /* the card is shown without charts */ }
    const panels = pick(list).map((series) => new Panel({title: series[0].name, series, small: true, context,
        href: context.href(["metric", one.group, series[0].name])}));
    return {panels, element: h("article", {class: "card"},
        h("header", {}, h("h3", {}, h("a", {href: context.href(["group", one.group]), "data-row": ""}, one.group)),
            h("span", {class: "muted"}, format.plural(one.series, "series", "series"), " · ", h("span", {class: "age", "data-group": one.group}))),
        panels.map((panel) => panel.element))};
}
