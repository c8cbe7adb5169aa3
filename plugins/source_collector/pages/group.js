// A group: a row for what was timed, a chart for each name, a list of its series.

import * as api from "./api.js";
import * as format from "./format.js";
import {Board, Panel, groupByName, splitTimed, timedRow} from "./panel.js";
import {h, notice, replace} from "./dom.js";
import {searchBox, seriesTable} from "./explore.js";

const MOST_SERIES = 2000, MOST_ROWS = 200, NEW_SERIES_MS = 2000;

export function group(context, [name]) {
    const charts = h("section", {"aria-label": "Charts"}), table = h("section", {"aria-label": "Series"}), inside = h("div", {class: "inside"});
    const note = h("p", {class: "muted", role: "status"});
    const board = new Board(context, {group: name}, {series: loadSoon});
    let list = [], isOpen = true, shownKey = null, shownRange = "", timer = 0;

    // New series come in crowds.
    function loadSoon() {
        timer = timer || setTimeout(load, NEW_SERIES_MS);
    }

    async function load() {
        timer = 0;
        try {
            const found = await api.allSeries({group: name}, MOST_SERIES);
            if (!isOpen)
                return;
            list = found.series;
            show();
        } catch (error) {
            if (isOpen && error.status)
                replace(charts, notice("error", "The series of this group cannot be read", h("p", {}, error.message)));
        }
    }

    function filtered(text) {
        const words = text.toLowerCase().split(/\s+/).filter(Boolean);
        return list.filter((series) => {
            const all = `${series.name} ${format.allLabels(series.labels)}`.toLowerCase();
            return words.every((word) => all.includes(word));
        });
    }

    function show() {
        const filter = context.parameters().get("q") || "", kept = filtered(filter), key = JSON.stringify([filter, kept.map((series) => series.id)]);
        if (key === shownKey)
            return;
        shownKey = key;
        const byName = groupByName(kept), {timed, others} = splitTimed(byName);
        const hrefOf = (metric) => context.href(["metric", name, metric]);
        board.clear();
        const rows = timed.map((base) => timedRow(base, byName, context, hrefOf));
        const panels = others.map((metric) => new Panel({title: metric, series: byName.get(metric), context, href: hrefOf(metric)}));
        note.textContent = filter ? `${kept.length} of ${format.plural(list.length, "series", "series")}` : format.plural(list.length, "series", "series");
        if (!kept.length)
            replace(charts, filter ? notice("", "Nothing matches", h("p", {}, "Every word has to occur in the name or a label.")) : notice("",
                "This group has no series", h("p", {}, h("a", {href: context.href(["series"])}, "All series"))));
        else
            replace(charts, rows.map((row) => row.element), h("div", {class: "grid"}, panels.map((panel) => panel.element)));
        replace(table, kept.length ? [h("h2", {class: "section-title"}, "Series"), seriesTable(kept.slice(0, MOST_ROWS), context, true),
            kept.length > MOST_ROWS ? h("p", {class: "muted"}, `The first ${MOST_ROWS}; filter for the others.`) : null] : null);
        [...rows.flatMap((row) => row.panels), ...panels].forEach((panel) => board.add(panel));
        board.connect();
    }

    async function showInside() {
        const groups = (await api.get("/api/v1/groups")).groups.map((one) => one.group).filter((one) => one.startsWith(name + "."));
        replace(inside, groups.length ? ["Inside: ", groups.slice(0, 20).map((one) => [h("a", {href: context.href(["group", one])}, one), " "])] : null);
    }

    const rangeKey = () => JSON.stringify(context.range());

    return {
        title: name,
        element: h("div", {class: "page"}, crumbs(context, name), h("div", {class: "row-head"},
            searchBox(context.parameters().get("q") || "", "Filter by name or label", (q) => context.change({q}, false)), note), inside, charts, table),
        open() {
            shownRange = rangeKey();
            context.loadMarks().then(load);
            showInside().catch(() => {});
        },
        update() {
            show();
            if (rangeKey() === shownRange)
                return;
            shownRange = rangeKey();
            context.loadMarks().then(() => board.reload());
        },
        close() {
            isOpen = false;
            clearTimeout(timer);
            board.close();
        },
    };
}

// The way to a group, each of those it is inside of as a link; last: what follows.
export function crumbs(context, group, last = null) {
    const parts = group.split("."), links = parts.map((part, index) => {
        const isHere = !last && index === parts.length - 1;
        return isHere ? h("span", {}, part) : h("a", {href: context.href(["group", parts.slice(0, index + 1).join(".")])}, part);
    });
    return h("h1", {class: "crumbs"}, links.flatMap((link, index) => (index ? [h("i", {}, "."), link] : [link])),
        last ? [h("i", {}, " › "), h("span", {}, last)] : null);
}
