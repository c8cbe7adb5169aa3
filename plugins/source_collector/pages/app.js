// The application: its head, which page is shown, and what they share. The state is in the address: #/group/my_app?range=1h

import * as api from "./api.js";
import * as format from "./format.js";
import * as ranges from "./range.js";
import {recolourAll} from "./charts.js";
import {h, icon, replace} from "./dom.js";
import {watch as watchBanners} from "./bars.js";
import {watchKeys, showHelp} from "./keys.js";
import {overview} from "./overview.js";
import {explore} from "./explore.js";
import {group} from "./group.js";
import {metric} from "./metric.js";
import {run, runs, compare} from "./runs.js";

// Each makes a page: {title, element, open(), update(parameters)?, close()}. update returns false if the page has to be made anew.
const PAGES = {"": overview, series: explore, group, metric, runs, run, compare};

const view = document.getElementById("view");
let page = null, path = null, parameters = new URLSearchParams();
let marks = [];

// ---- The address -----------------------------------------------------------------------------

function readAddress() {
    const text = location.hash.replace(/^#\/?/, ""), at = text.indexOf("?");
    const words = (at < 0 ? text : text.slice(0, at)).split("/").map(decode);
    return {words, parameters: new URLSearchParams(at < 0 ? "" : text.slice(at + 1))};
}

function decode(text) {
    try {
        return decodeURIComponent(text);
    } catch (error) {
        return text;
    }
}

// An address of a page; what is shown in time is kept.
function href(words, more = {}) {
    const found = new URLSearchParams();
    for (const name of ["range", "from", "to"])
        if (parameters.has(name))
            found.set(name, parameters.get(name));
    for (const [name, value] of Object.entries(more))
        if (value !== null && value !== undefined && value !== "")
            found.set(name, value);
    const query = found.toString();
    return "#/" + words.map(encodeURIComponent).join("/") + (query ? "?" + query : "");
}

// Changes parameters of the present page. isStep: the browser's button "back" undoes it.
function change(values, isStep = true) {
    const next = new URLSearchParams(parameters);
    for (const [name, value] of Object.entries(values)) {
        next.delete(name);
        if (value !== null && value !== "")
            next.set(name, value);
    }
    goTo(next, isStep);
}

function goTo(next, isStep) {
    const query = next.toString(), hash = "#/" + path.map(encodeURIComponent).join("/") + (query ? "?" + query : "");
    if (hash === location.hash)
        return;
    history[isStep ? "pushState" : "replaceState"](null, "", hash);
    route();
}

function setRange(range) {
    const next = new URLSearchParams(parameters);
    ranges.write(next, range);
    goTo(next, true);
}

// ---- What pages get --------------------------------------------------------------------------

const context = {
    range: () => ranges.parse(parameters),
    setRange,
    zoom: (from, to) => setRange(ranges.fixed(from, to)),
    back: () => setRange(ranges.zoom(context.range(), 3)),
    marks: () => marks,
    loadMarks,
    href,
    change,
    parameters: () => parameters,
};

async function loadMarks() {
    const {from, to} = ranges.bounds(context.range());
    try {
        marks = (await api.get("/api/v1/markers", {from: from.toFixed(3), to: to.toFixed(3)})).markers;
    } catch (error) {
        marks = [];
    }
    return marks;
}

// ---- Pages -----------------------------------------------------------------------------------

function route() {
    const found = readAddress(), isSame = path && found.words.join("/") === path.join("/");
    parameters = found.parameters;
    path = found.words;
    head.update();
    if (isSame && page && page.update && page.update(parameters) !== false)
        return;
    show(PAGES[path[0]] || lost);
}

function show(make) {
    if (page)
        page.close();
    document.getElementById("tip").hidden = true;
    page = make(context, path.slice(1));
    head.showTime(!page.isTimeless);
    document.title = page.title ? `${page.title} · weir` : "weir";
    replace(view, page.element);
    scrollTo(0, 0);
    page.open();
}

function lost() {
    return {title: "Not found", element: h("div", {class: "page"}, h("section", {class: "notice"}, h("h1", {}, "There is no such page"),
        h("p", {}, h("a", {href: "#/"}, "Go to the overview")))), open() {}, close() {}};
}

// ---- The head --------------------------------------------------------------------------------

const head = (() => {
    const links = [["", "Overview"], ["series", "Series"], ["runs", "Runs"]].map(([word, text]) => ({word, text, element: h("a", {}, text)}));
    const picker = ranges.picker(() => context.range(), setRange);
    const live = h("button", {type: "button", class: "button live", onclick: goLive}, h("i", {class: "dot"}), h("span", {}));
    const zone = h("button", {type: "button", class: "button quiet", onclick: toggleZone});
    const theme = h("button", {type: "button", class: "button quiet square", onclick: toggleTheme});
    const help = h("button", {type: "button", class: "button quiet square", "aria-label": "Keyboard and help", onclick: showHelp}, "?");
    replace(document.getElementById("bar"),
        h("a", {class: "brand", href: "#/", "aria-label": "weir, overview"}, h("img", {src: "/pages/icon.svg", alt: "", width: 22, height: 22}),
            h("span", {}, "weir")),
        h("nav", {"aria-label": "Pages"}, links.map((link) => link.element)),
        h("div", {class: "tools"}, live, picker.element, zone, theme, help));

    function goLive() {
        const range = context.range();
        setRange(ranges.isMoving(range) ? ranges.fixed(...Object.values(ranges.bounds(range))) : ranges.moving(300));
    }

    function update() {
        const word = path ? path[0] : "";
        for (const link of links) {
            const isHere = link.word === word || (link.word === "series" && (word === "group" || word === "metric"))
                || (link.word === "runs" && (word === "run" || word === "compare"));
            link.element.setAttribute("href", href([link.word]));
            if (isHere)
                link.element.setAttribute("aria-current", "page");
            else
                link.element.removeAttribute("aria-current");
        }
        picker.update();
        showLive();
        zone.textContent = format.isUtc() ? "UTC" : format.offset(api.now());
        zone.setAttribute("aria-label", format.isUtc() ? "Times are in UTC: show local time" : `Times are local, ${format.offset(api.now())}: show UTC`);
        replace(theme, icon(isDark() ? "sun" : "moon"));
        theme.setAttribute("aria-label", isDark() ? "Light theme" : "Dark theme");
    }

    function showLive() {
        const isLive = ranges.isMoving(context.range()), isUp = api.connection() === "ok";
        live.classList.toggle("on", isLive && isUp);
        live.lastChild.textContent = !isLive ? "Paused" : isUp ? "Live" : "Offline";
        live.setAttribute("aria-label", isLive ? "Live: pause" : "Paused: show live values");
    }

    // Runs have their own times.
    function showTime(isShown) {
        live.hidden = picker.element.hidden = !isShown;
    }
    return {update, showLive, showTime};
})();

function isDark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function toggleTheme() {
    const next = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try { localStorage.setItem("weir.theme", next); } catch (error) { /* for this page only */ }
    recolourAll();
    head.update();
}

function toggleZone() {
    format.setUtc(!format.isUtc());
    head.update();
    show(PAGES[path[0]] || lost);
}

// ---- Start -----------------------------------------------------------------------------------

document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault(); // the address is the application's
    view.focus();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    recolourAll();
    head.update();
});
addEventListener("hashchange", route);
api.watchConnection((next, before) => {
    head.showLive();
    if (next === "ok" && before !== "ok" && page)
        show(PAGES[path[0]] || lost);
});
watchBanners();
watchKeys({go: (word) => { location.hash = href([word]); }, context, toggleTheme, toggleZone, ranges});
route();
