// The keyboard.

import {h} from "./dom.js";

const KEYS = [["/", "search"], ["g o", "overview"], ["g s", "series"], ["g r", "runs"], ["↑ ↓", "from one entry to the next; Enter opens it"],
    ["← →", "earlier, later"], ["+ −", "zoom in, zoom out"], ["l", "live, the last 5 minutes"], ["t", "light or dark"], ["u", "local time or UTC"],
    ["Esc", "close, or leave the search"], ["?", "this help"]];

let dialog = null;

export function showHelp() {
    if (!dialog) {
        dialog = h("dialog", {class: "help", "aria-labelledby": "help-title"},
            h("h2", {id: "help-title"}, "Keyboard"),
            h("dl", {}, KEYS.map(([keys, words]) => [h("dt", {}, keys.split(" ").map((key) => h("kbd", {}, key))), h("dd", {}, words)])),
            h("h2", {}, "Charts"),
            h("p", {}, "Drag across a chart to zoom in, double-click to zoom out. Counters are drawn as rates, histograms as the band from the "
                + "50th to the 99th percentile, other values as their mean within the band from the lowest to the highest. Dashed lines "
                + "are restarts and runs."),
            h("form", {method: "dialog"}, h("button", {class: "button primary"}, "Close")));
        dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
        document.body.append(dialog);
    }
    if (!dialog.open)
        dialog.showModal();
}

function isTyping(target) {
    return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}

// Focus on the next entry of lists that is seen.
function move(by) {
    const rows = [...document.querySelectorAll("#view [data-row]")].filter((row) => row.offsetParent !== null);
    const at = rows.indexOf(document.activeElement);
    const next = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.max(0, Math.min(rows.length - 1, at + by))];
    if (next) {
        next.focus();
        next.scrollIntoView({block: "nearest"});
    }
    return Boolean(next);
}

function search(go) {
    const box = document.querySelector("#view input[type=search]");
    if (box)
        box.select();
    if (box)
        box.focus();
    else
        go("series");
}

function escape(target) {
    const dragged = [...document.querySelectorAll(".plot")].some((plot) => plot.cancelDrag && plot.cancelDrag());
    if (!dragged && target instanceof HTMLElement && target !== document.body)
        target.blur();
}

// what: {go(word), context, toggleTheme(), toggleZone(), ranges}
export function watchKeys(what) {
    const {go, context, ranges} = what;
    let isAfterG = false, timer = 0;
    const afterG = {o: () => go(""), s: () => go("series"), r: () => go("runs")};
    const keys = {
        "/": () => search(go), "?": showHelp, t: what.toggleTheme, u: what.toggleZone, l: () => context.setRange(ranges.moving(300)),
        "+": () => context.setRange(ranges.zoom(context.range(), 1 / 3)), "-": () => context.setRange(ranges.zoom(context.range(), 3)),
        ArrowLeft: () => context.setRange(ranges.shift(context.range(), -0.5)),
        ArrowRight: () => context.setRange(ranges.shift(context.range(), 0.5)),
        ArrowDown: () => move(1), ArrowUp: () => move(-1),
    };
    addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey || (dialog && dialog.open))
            return;
        const target = event.target;
        if (event.key === "Escape")
            return escape(target);
        if (isTyping(target)) {
            if (event.key === "ArrowDown" && target.type === "search" && move(1))
                event.preventDefault();
            return undefined;
        }
        const action = (isAfterG && afterG[event.key]) || keys[event.key];
        isAfterG = event.key === "g";
        clearTimeout(timer);
        timer = setTimeout(() => { isAfterG = false; }, 1500);
        if (!action || (target.closest && target.closest(".menu, .command pre")))
            return undefined;
        event.preventDefault();
        return action();
    });
}
