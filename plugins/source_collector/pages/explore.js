// All series: a search box, the groups, and a list.

import * as api from "./api.js";
import * as format from "./format.js";
import {h, icon, notice, replace, tableHead} from "./dom.js";
import {kindOf} from "./panel.js";

const PAGE = 100, TYPING_MS = 150;
const INSTRUMENTS = {rate: "counter", band: "histogram"};

export function searchBox(text, words, change) {
    let timer = 0;
    const box = h("input", {type: "search", placeholder: words, "aria-label": words, autocomplete: "off", spellcheck: "false", maxlength: 200});
    box.value = text;
    box.addEventListener("input", () => {
        clearTimeout(timer);
        timer = setTimeout(() => change(box.value.trim()), TYPING_MS);
    });
    box.addEventListener("keydown", (event) => {
        if (event.key === "Escape" && box.value) {
            event.stopPropagation();
            box.value = "";
            change("");
        }
    });
    return h("label", {class: "search"}, icon("search"), box, h("kbd", {"aria-hidden": "true"}, "/"));
}

// ---- A table of series -----------------------------------------------------------------------

export function seriesTable(list, context, isOfGroup) {
    const headings = ["name", ...(isOfGroup ? [] : ["group"]), "labels", "kind", "#values", "#latest", ""];
    return h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Series"}, h("table", {class: "series"},
        tableHead(headings),
        h("tbody", {}, list.map((series) => rowOf(series, context, isOfGroup)))));
}

function rowOf(series, context, isOfGroup) {
    const unit = format.unitOf(series);
    const labels = Object.entries(series.labels || {}).sort();
    return h("tr", {},
        h("th", {scope: "row"}, h("a", {"data-row": "", href: context.href(["metric", series.group, series.name], {series: series.id})}, series.name)),
        isOfGroup ? null : h("td", {}, h("a", {href: context.href(["group", series.group])}, series.group)),
        h("td", {class: "labels"}, labels.map(([key, text]) => h("span", {class: "label"}, `${key}=${text}`))),
        h("td", {class: "muted"}, INSTRUMENTS[kindOf(series)] || series.instrument),
        h("td", {class: "number"}, format.count(series.count)),
        h("td", {class: "number"}, format.value(series.last_value, kindOf(series) === "rate" && !unit ? "" : unit)),
        h("td", {class: "muted nowrap"}, format.ago(series.last, api.now())));
}

// ---- The page --------------------------------------------------------------------------------

export function explore(context) {
    const groups = h("nav", {class: "side", "aria-label": "Groups"}), results = h("section", {"aria-label": "Series"});
    const count = h("p", {class: "muted", role: "status"});
    let wanted = null, isOpen = true;
    const box = searchBox(context.parameters().get("q") || "", "Search group, name or label", (q) => context.change({q}, false));

    async function search() {
        const key = context.parameters().get("q") || "";
        if (key === wanted)
            return;
        wanted = key;
        await more(null, []);
    }

    async function more(after, before) {
        const key = wanted;
        try {
            const found = await api.get("/api/v1/series", {search: key, limit: PAGE, after});
            if (isOpen && key === wanted)
                show(before.concat(found.series), found.next);
        } catch (error) {
            if (isOpen && error.status)
                replace(results, notice("error", "The search failed", h("p", {}, error.message)));
        }
    }

    function show(list, next) {
        count.textContent = list.length || wanted ? `${next ? "the first " : ""}${format.plural(list.length, "series", "series")}` : "";
        if (!list.length)
            return replace(results, wanted ? notice("", "Nothing matches", h("p", {}, "Every word has to occur in the group, the name or a label: ",
                "try fewer words.")) : notice("", "No series yet", h("p", {}, h("a", {href: context.href([""])}, "The overview"), " shows how to send values.")));
        return replace(results, seriesTable(list, context, false), next ? h("button", {type: "button", class: "button", onclick: () => more(next, list)},
            "Show more") : null);
    }

    async function showGroups() {
        const list = (await api.get("/api/v1/groups")).groups.sort((a, b) => (a.group < b.group ? -1 : 1));
        replace(groups, h("h2", {class: "section-title"}, "Groups"), h("ul", {}, list.map((one) => h("li", {},
            h("a", {href: context.href(["group", one.group]), "data-row": "", class: "depth-" + Math.min(4, depthOf(one.group, list))}, one.group),
            h("span", {class: "muted"}, format.count(one.series))))));
    }

    return {
        title: "Series",
        element: h("div", {class: "page"}, h("h1", {class: "sr"}, "Series"), h("div", {class: "row-head"}, box, count),
            h("div", {class: "with-side"}, groups, results)),
        open() {
            search();
            showGroups().catch(() => {});
        },
        update() {
            search();
        },
        close() {
            isOpen = false;
        },
    };
}

// How many of the groups a group is inside of.
function depthOf(group, list) {
    return list.filter((one) => group.startsWith(one.group + ".")).length;
}
