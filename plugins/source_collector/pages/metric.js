// A metric: all series of a name in a group, chosen by labels; the largest by a label; the values as they came.

import * as api from "./api.js";
import * as format from "./format.js";
import * as ranges from "./range.js";
import {Board, Panel, choose, kindOf} from "./panel.js";
import {crumbs} from "./group.js";
import {Events} from "./events.js";
import {h, notice, replace, tableHead} from "./dom.js";

const MOST_SERIES = 2000, MOST_CHOICES = 50, TOP = 10;

export function metric(context, [group, name]) {
    const facts = h("p", {class: "facts muted"}), filters = h("div", {class: "filters"}), chart = h("section", {"aria-label": "Chart"});
    const top = h("section", {class: "top", "aria-label": "Largest"});
    const marks = h("section", {class: "marks", "aria-label": "Restarts and runs"});
    const board = new Board(context, null, {values: (list) => events.push(list)});
    const events = new Events(context, () => choose(chosen));
    let list = [], chosen = [], isOpen = true, shown = "";

    async function load() {
        try {
            list = (await api.allSeries({group, name}, MOST_SERIES)).series;
        } catch (error) {
            if (isOpen && error.status)
                replace(chart, notice("error", "The series cannot be read", h("p", {}, error.message)));
            return;
        }
        if (isOpen)
            await show();
    }

    // The labels that the address asks for: l.route=/a
    function wanted() {
        return [...context.parameters()].filter(([key]) => key.startsWith("l.")).map(([key, text]) => [key.slice(2), text]);
    }

    function isChosen(series) {
        const id = context.parameters().get("series");
        return (!id || series.id === Number(id)) && wanted().every(([key, text]) => (series.labels || {})[key] === text);
    }

    async function show() {
        shown = context.parameters().toString();
        chosen = list.filter(isChosen);
        board.clear();
        showFilters();
        if (!chosen.length) {
            replace(chart, notice("", "No series with these labels", h("p", {}, h("a", {href: context.href(["metric", group, name])}, "Show all"))));
            return;
        }
        const first = chosen[0], kind = kindOf(first), words = {rate: "counter, as a rate per second", band: "histogram, 50th to 99th percentile",
            line: first.instrument};
        replace(facts, [words[kind], first.unit && `in ${first.unit}`, format.plural(chosen.length, "series", "series"), first.help].filter(Boolean).join(" · "));
        const panel = new Panel({title: name, series: chosen, context});
        panel.element.classList.add("tall");
        replace(chart, panel.element);
        board.add(panel);
        board.connect();
        showMarks();
        await Promise.all([events.load(), showTop()]).catch(() => {});
    }

    // ---- Labels

    function showFilters() {
        const keys = [...new Set(list.flatMap((series) => Object.keys(series.labels || {})))].sort(), by = context.parameters().get("by");
        const set = new Map(wanted()), id = context.parameters().get("series");
        replace(filters, id ? h("a", {class: "button", href: context.href(["metric", group, name])}, `All ${list.length} series`) : null,
            id ? null : keys.map((key) => choiceOf(key, set)), !id && keys.length ? topChoice(keys, by) : null);
    }

    function choiceOf(key, set) {
        const texts = [...new Set(list.map((series) => (series.labels || {})[key]).filter((text) => text !== undefined))].sort();
        const select = h("select", {onchange: () => context.change({["l." + key]: select.value === "" ? null : texts[Number(select.value)]})},
            h("option", {value: ""}, "all"), texts.slice(0, MOST_CHOICES).map((text, index) => h("option", {value: index}, text)));
        const at = texts.indexOf(set.get(key));
        select.value = at >= 0 && at < MOST_CHOICES ? String(at) : "";
        return h("label", {class: "choice"}, h("span", {}, key), select);
    }

    function topChoice(keys, by) {
        const select = h("select", {onchange: () => context.change({by: select.value})}, keys.map((key) => h("option", {value: key}, key)));
        select.value = keys.includes(by) ? by : keys[0];
        return h("label", {class: "choice"}, h("span", {}, "largest by"), select);
    }

    async function showTop() {
        const keys = [...new Set(list.flatMap((series) => Object.keys(series.labels || {})))].sort();
        const by = keys.includes(context.parameters().get("by")) ? context.parameters().get("by") : keys[0];
        if (!by || context.parameters().get("series"))
            return replace(top);
        const {from, to} = ranges.bounds(context.range());
        const found = await api.get("/api/v1/top", {group, name, by, from: from.toFixed(6), to: to.toFixed(6), n: TOP});
        return isOpen && replace(top, found.top.length ? topTable(found) : null);
    }

    function topTable(found) {
        const kind = kindOf(list[0]), unit = format.unitOf(list[0]), isCount = kind === "rate";
        const size = (row) => Number(isCount ? row.increase ?? row.sum : row.mean) || 0;
        const most = Math.max(...found.top.map(size), 0);
        const rows = found.top.map((row) => {
            const bar = h("meter", {min: 0, max: most || 1, value: Math.max(0, size(row)), "aria-label": `${row.value}: ${size(row)}`});
            return h("tr", {}, h("th", {scope: "row"}, h("a", {href: context.href(["metric", group, name], {["l." + found.by]: row.value, by: found.by}),
                "data-row": ""}, row.value === "" ? "(empty)" : row.value)),
            h("td", {class: "bar"}, bar),
            isCount ? h("td", {class: "number"}, format.value(row.increase ?? row.sum, unit)) : [h("td", {class: "number"}, format.value(row.mean, unit)),
                h("td", {class: "number"}, format.value(row.max, unit)), h("td", {class: "number"}, format.count(row.count))],
            h("td", {class: "number muted"}, format.count(row.series)));
        });
        const headings = [found.by, "", ...(isCount ? ["#counted"] : ["#mean", "#highest", "#values"]), "#series"];
        return [h("h2", {class: "section-title"}, `Largest by ${found.by}`), h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": `Largest by ${found.by}`},
            h("table", {}, tableHead(headings), h("tbody", {}, rows)))];
    }

    function showMarks() {
        const found = [...context.marks()].reverse().slice(0, 20);
        replace(marks, found.length ? [h("h2", {class: "section-title"}, "Restarts and runs"), h("ul", {}, found.map((mark) => h("li", {},
            h("span", {class: "muted nowrap"}, format.dateTime(mark.t)), " ", mark.run ? h("a", {href: context.href(["run", String(mark.run)])}, mark.text)
                : mark.text)))] : null);
    }

    return {
        title: `${name} · ${group}`,
        element: h("div", {class: "page"}, crumbs(context, group, name), facts, filters, chart, h("div", {class: "columns"}, events.element,
            h("div", {}, top, marks))),
        open() {
            context.loadMarks().then(load);
        },
        update() {
            if (shown !== context.parameters().toString())
                context.loadMarks().then(() => isOpen && show());
        },
        close() {
            isOpen = false;
            board.close();
        },
    };
}
