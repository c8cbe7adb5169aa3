// The time range that is shown: the last so many seconds, which moves, or from one time to another.

import * as api from "./api.js";
import * as format from "./format.js";
import {h, icon, replace} from "./dom.js";

export const CHOICES = [[300, "Last 5 min", "5m"], [900, "Last 15 min", "15m"], [3600, "Last 1 h", "1h"], [21600, "Last 6 h", "6h"],
    [86400, "Last 1 day", "1d"], [7 * 86400, "Last 7 days", "7d"]];
const UNITS = {s: 1, m: 60, h: 3600, d: 86400};
const SHORTEST = 0.01;

// From the parameters of the page's address.
export function parse(parameters) {
    const from = Number(parameters.get("from")), to = Number(parameters.get("to"));
    if (parameters.get("from") && parameters.get("to") && to > from)
        return fixed(from, to);
    const length = /^(\d+)([smhd])$/.exec(parameters.get("range") || "");
    return moving(length && Number(length[1]) ? Number(length[1]) * UNITS[length[2]] : 300);
}

export const moving = (seconds) => ({seconds});

export function fixed(from, to) {
    const middle = (from + to) / 2, half = Math.max(to - from, SHORTEST) / 2;
    return {from: middle - half, to: middle + half};
}

export const isMoving = (range) => "seconds" in range;
export const isLive = isMoving;

// Sets the parameters of an address; the range that is used without any needs none.
export function write(parameters, range) {
    for (const name of ["range", "from", "to"])
        parameters.delete(name);
    if (!isMoving(range)) {
        parameters.set("from", String(Number(range.from.toFixed(4))));
        parameters.set("to", String(Number(range.to.toFixed(4))));
    } else if (range.seconds !== 300) {
        parameters.set("range", lengthText(range.seconds));
    }
}

function lengthText(seconds) {
    for (const unit of ["d", "h", "m"])
        if (seconds % UNITS[unit] === 0)
            return seconds / UNITS[unit] + unit;
    return seconds + "s";
}

export function bounds(range) {
    return isMoving(range) ? {from: api.now() - range.seconds, to: api.now()} : range;
}

export function lengthOf(range) {
    return isMoving(range) ? range.seconds : range.to - range.from;
}

export function zoom(range, factor) {
    const {from, to} = bounds(range), length = (to - from) * factor;
    if (isMoving(range) && factor > 1) {
        const next = CHOICES.find(([seconds]) => seconds > range.seconds);
        return next ? moving(next[0]) : range;
    }
    const middle = isMoving(range) ? to - length / 2 : (from + to) / 2;
    return fixed(middle - length / 2, middle + length / 2);
}

export function shift(range, part) {
    const {from, to} = bounds(range), by = (to - from) * part;
    return to + by >= api.now() && isMoving(range) ? range : fixed(from + by, to + by);
}

export function text(range) {
    if (isMoving(range)) {
        const choice = CHOICES.find(([seconds]) => seconds === range.seconds);
        return choice ? choice[1] : `Last ${format.duration(range.seconds)}`;
    }
    const decimals = range.to - range.from < 10 ? 3 : 0;
    const sameDay = format.day(range.from) === format.day(range.to);
    const end = sameDay ? format.clock(range.to, decimals) : `${format.day(range.to)} ${format.clock(range.to, decimals)}`;
    return `${format.day(range.from)} ${format.clock(range.from, decimals)} – ${end}`;
}

// ---- The picker ------------------------------------------------------------------------------

// "2026-11-24 11:00:05", here or in UTC as chosen. Returns NaN if it is none.
export function parseTime(text) {
    const match = /^\s*(\d{4})-(\d\d?)-(\d\d?)(?:[ T](\d\d?):(\d\d)(?::(\d\d(?:\.\d+)?))?)?\s*$/.exec(text);
    if (!match)
        return NaN;
    const [year, month, day, hour, minute, second] = match.slice(1).map((part) => Number(part || 0));
    const here = Date.UTC(year, month - 1, day, hour, minute) / 1000 + second;
    return here - format.offsetMinutes(here - format.offsetMinutes(here) * 60) * 60;
}

// A button with a menu. get(): the range; choose(range)
export function picker(get, choose) {
    const label = h("span", {});
    const button = h("button", {type: "button", class: "button range", "aria-haspopup": "true", "aria-expanded": "false", id: "range"},
        icon("clock"), label);
    const menu = h("div", {class: "menu", hidden: true, role: "group", "aria-label": "Time range"});
    const element = h("div", {class: "picker"}, button, menu);

    const close = (refocus) => {
        menu.hidden = true;
        button.setAttribute("aria-expanded", "false");
        if (refocus)
            button.focus();
    };
    const take = (range) => {
        close(true);
        choose(range);
    };
    button.addEventListener("click", () => {
        if (!menu.hidden)
            return close(false);
        fill(menu, get(), take);
        menu.hidden = false;
        button.setAttribute("aria-expanded", "true");
        const current = menu.querySelector("[aria-pressed=true]") || menu.querySelector("button");
        return current.focus();
    });
    element.addEventListener("keydown", (event) => {
        if (event.key === "Escape" && !menu.hidden) {
            event.stopPropagation();
            close(true);
        }
    });
    document.addEventListener("pointerdown", (event) => {
        if (!menu.hidden && !element.contains(event.target))
            close(false);
    });
    return {element, update: () => {
        label.textContent = text(get());
        button.setAttribute("aria-label", `Time range: ${text(get())}`);
    }};
}

function fill(menu, range, take) {
    const {from, to} = bounds(range);
    const field = (name, time) => h("input", {type: "text", name, value: `${format.day(time)} ${format.clock(time)}`, autocomplete: "off",
        spellcheck: "false"});
    const problem = h("p", {class: "problem-text", role: "alert"});
    const first = field("from", from), last = field("to", to);
    const submit = (event) => {
        event.preventDefault();
        const start = parseTime(first.value), end = parseTime(last.value);
        if (Number.isNaN(start) || Number.isNaN(end))
            problem.textContent = "A time looks like 2026-11-24 11:30:00.";
        else if (end <= start)
            problem.textContent = "The end must be later than the start.";
        else
            take(fixed(start, end));
    };
    replace(menu,
        h("div", {class: "choices"}, CHOICES.map(([seconds, words]) => h("button", {type: "button",
            "aria-pressed": String(isMoving(range) && range.seconds === seconds), onclick: () => take(moving(seconds))}, words))),
        h("form", {class: "custom", onsubmit: submit},
            h("label", {}, h("span", {}, `From (${format.offset(from)})`), first), h("label", {}, h("span", {}, "To"), last), problem,
            h("button", {type: "submit", class: "button primary"}, "Show")));
}
