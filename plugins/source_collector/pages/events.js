// The values as they came, the newest first.

import * as api from "./api.js";
import * as format from "./format.js";
import * as ranges from "./range.js";
import {h, replace, tableHead} from "./dom.js";

const PAGE = 100, MOST_LIVE = 100, SHORT_TEXT = 80;

// A table that fills itself. series(): the chosen ones
export class Events {
    constructor(context, series) {
        this.context = context;
        this.series = series;
        this.body = h("tbody", {});
        this.note = h("span", {class: "muted"});
        this.more = h("button", {type: "button", class: "button", hidden: true, onclick: () => this.loadMore()}, "Show older");
        this.head = h("thead", {});
        this.element = h("section", {class: "events", "aria-label": "Values"},
            h("h2", {class: "section-title"}, "Values as they came ", this.note),
            h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Values"}, h("table", {}, this.head, this.body)), this.more);
        this.oldest = null;
    }

    parameters(before) {
        const {from, to} = ranges.bounds(this.context.range());
        return {series: this.series().map((one) => one.id).join(","), from: from.toFixed(6), to: to.toFixed(6), limit: PAGE, before};
    }

    async load() {
        const list = this.series();
        this.byId = new Map(list.map((series, index) => [series.id, {...series, text: format.labelTexts(list)[index]}]));
        this.head.replaceWith(this.head = tableHead(["time", ...(list.length > 1 ? ["series"] : []), "#value", "metadata"]));
        if (!list.length)
            return replace(this.body);
        const key = this.key = JSON.stringify(this.parameters().series) + JSON.stringify(this.context.range());
        const found = await api.get("/api/v1/events", this.parameters());
        if (key === this.key) {
            replace(this.body);
            this.oldest = null;
            this.take(found);
        }
        return undefined;
    }

    async loadMore() {
        this.more.disabled = true;
        try {
            this.take(await api.get("/api/v1/events", this.parameters(this.oldest)));
        } finally {
            this.more.disabled = false;
        }
    }

    take(found) {
        this.body.append(...found.events.map((event) => this.rowOf(event)));
        this.oldest = found.next;
        this.more.hidden = !found.more;
        this.showNote(found.more);
    }

    showNote(isMore) {
        const number = this.body.children.length;
        this.note.textContent = number ? `${isMore ? "the newest " : ""}${format.count(number)}` : "none in this time";
    }

    // Live ones, which come without their metadata.
    push(list) {
        const added = list.filter(([id]) => this.byId && this.byId.has(id)).slice(-MOST_LIVE);
        if (!added.length)
            return;
        this.body.prepend(...added.reverse().map(([series, t, value]) => this.rowOf({series, t, value})));
        while (this.body.children.length > MOST_LIVE && this.body.lastChild) {
            this.body.lastChild.remove();
            this.more.hidden = true;
        }
        this.showNote(this.body.children.length >= MOST_LIVE);
    }

    rowOf(event) {
        const series = this.byId.get(event.series) || {name: String(event.series), text: ""};
        return h("tr", {}, h("td", {class: "nowrap"}, h("time", {datetime: new Date(event.t * 1000).toISOString()},
            `${format.day(event.t)} ${format.clock(event.t, 6)} ${format.offset(event.t)}`)),
        this.byId.size > 1 ? h("td", {class: "labels"}, h("span", {class: "label"}, series.text || series.name)) : null,
        h("td", {class: "number"}, format.count(event.value), " ", h("span", {class: "muted"}, format.unitOf(series))),
        h("td", {class: "metadata"}, metadataOf(event.metadata)));
    }
}

function metadataOf(text) {
    if (!text)
        return null;
    if (text.length <= SHORT_TEXT)
        return h("code", {}, text);
    return h("details", {}, h("summary", {}, h("code", {}, text.slice(0, SHORT_TEXT) + "…")), h("pre", {}, text));
}
