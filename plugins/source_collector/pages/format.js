// Numbers with units, and times.

let utc = false;
try { utc = localStorage.getItem("weir.utc") === "1"; } catch (error) { /* storage is off */ }

export const isUtc = () => utc;

export function setUtc(value) {
    utc = value;
    try { localStorage.setItem("weir.utc", value ? "1" : "0"); } catch (error) { /* for this page only */ }
}

// ---- Numbers ---------------------------------------------------------------------------------

const grouped = new Intl.NumberFormat("en-US", {maximumFractionDigits: 6});

// All digits: 13,004
export function count(value) {
    return typeof value === "number" ? grouped.format(value) : String(value ?? "");
}

export function plural(number, one, many) {
    return `${count(number)} ${number === 1 ? one : many || one + "s"}`;
}

function digits(value) {
    const size = Math.abs(value);
    const decimals = size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
    return String(Number(value.toFixed(decimals)));
}

function scale(value, steps) {
    let chosen = steps[0];
    for (const step of steps)
        if (Math.abs(value) >= step[0] * 0.9995)
            chosen = step;
    return [value / chosen[0], chosen[1]];
}

const PLAIN = [[1, ""], [1e3, " k"], [1e6, " M"], [1e9, " G"], [1e12, " T"]];
const BYTES = [[1, " B"], [1024, " KiB"], [1024 ** 2, " MiB"], [1024 ** 3, " GiB"], [1024 ** 4, " TiB"]];
const SECONDS = [[1e-9, " ns"], [1e-6, " µs"], [1e-3, " ms"], [1, " s"], [60, " min"], [3600, " h"], [86400, " d"]];
const IN_SECONDS = {ns: 1e-9, us: 1e-6, "µs": 1e-6, ms: 1e-3, s: 1, sec: 1, seconds: 1, min: 60, h: 3600};
const BYTE_WORDS = ["bytes", "byte", "By", "B"];

// The unit of a series: what was declared, else what its name ends with.
export function unitOf(series) {
    if (series.unit)
        return series.unit;
    const ending = /[._](ns|us|ms|seconds|bytes)$/.exec(series.name || "");
    return ending ? ending[1] : "";
}

export const isBytes = (unit) => BYTE_WORDS.includes(unit);

// Short and scaled: 12.3 ms, 4.1 MiB, 83 %
export function value(number, unit = "") {
    if (typeof number === "string")
        return number;
    if (number === null || number === undefined)
        return "–";
    if (Number.isNaN(number))
        return "NaN";
    if (!Number.isFinite(number))
        return number < 0 ? "−∞" : "∞";
    if (isBytes(unit))
        return scaled(number, BYTES);
    if (unit in IN_SECONDS)
        return number === 0 ? "0 " + unit : scaled(number * IN_SECONDS[unit], SECONDS);
    if (unit === "%")
        return digits(number) + " %";
    const small = number !== 0 && Math.abs(number) < 0.001;
    const text = small ? number.toExponential(2) : scaled(number, PLAIN);
    return unit && unit !== "1" ? `${text} ${unit}` : text;
}

function scaled(number, steps) {
    const [part, word] = scale(number, steps);
    return digits(part) + word;
}

export function rate(number, unit = "") {
    return number === null || number === undefined ? "–" : value(number, unit) + "/s";
}

export function percent(part, whole) {
    return whole ? value(100 * part / whole, "%") : "0 %";
}

export function duration(seconds) {
    if (seconds < 1)
        return value(seconds, "s");
    const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
    let rest = Math.round(seconds);
    const words = [];
    for (const [size, word] of parts) {
        const whole = Math.floor(rest / size);
        rest -= whole * size;
        if (whole)
            words.push(`${whole} ${word}`);
    }
    return words.slice(0, 2).join(" ") || "0 s";
}

export function ago(time, now) {
    if (!time)
        return "never";
    const age = now - time;
    return age < 2 ? "just now" : duration(age).split(" ").slice(0, 2).join(" ") + " ago";
}

// ---- Times -----------------------------------------------------------------------------------

const two = (number) => String(number).padStart(2, "0");

// The parts of a time, here or in UTC.
export function parts(seconds) {
    const date = new Date(seconds * 1000 + (utc ? 0 : offsetMinutes(seconds) * 60000));
    return {year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate(), hour: date.getUTCHours(),
        minute: date.getUTCMinutes(), second: date.getUTCSeconds()};
}

// East of UTC.
export function offsetMinutes(seconds) {
    return utc ? 0 : -new Date(seconds * 1000).getTimezoneOffset();
}

export function offset(seconds) {
    const minutes = offsetMinutes(seconds), size = Math.abs(minutes);
    return utc ? "UTC" : `${minutes < 0 ? "−" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

export function day(seconds) {
    const at = parts(seconds);
    return `${at.year}-${two(at.month)}-${two(at.day)}`;
}

export function clock(seconds, decimals = 0) {
    const at = parts(seconds);
    const text = `${two(at.hour)}:${two(at.minute)}:${two(at.second)}`;
    return decimals ? text + (seconds - Math.floor(seconds)).toFixed(decimals).slice(1).padEnd(decimals + 1, "0") : text;
}

export function dateTime(seconds, decimals = 0) {
    return `${day(seconds)} ${clock(seconds, decimals)} ${offset(seconds)}`;
}

const TICK_STEPS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
    86400, 2 * 86400, 7 * 86400, 30 * 86400, 90 * 86400, 365 * 86400];

// Round times between two, at most so many.
export function ticks(from, to, most) {
    const step = TICK_STEPS.find((size) => (to - from) / size <= most) || (to - from) / most;
    const shift = step >= 3600 ? offsetMinutes(from) * 60 : 0;
    const found = [];
    for (let i = Math.ceil((from + shift) / step); i * step - shift <= to; i++)
        found.push({value: i * step - shift, step});
    return found;
}

export function tick(seconds, step) {
    const at = parts(seconds);
    if (step >= 86400 || (step >= 3600 && at.hour === 0))
        return `${two(at.month)}-${two(at.day)}`;
    if (step >= 60)
        return `${two(at.hour)}:${two(at.minute)}`;
    return clock(seconds, step >= 1 ? 0 : step >= 0.1 ? 1 : step >= 0.01 ? 2 : 3);
}

// A step of buckets that is round, so that they do not move when the range does.
const BUCKET_STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200,
    14400, 43200, 86400, 7 * 86400];

export function bucketStep(seconds, points) {
    return BUCKET_STEPS.find((step) => seconds / step <= points) || seconds / points;
}

// ---- Labels ----------------------------------------------------------------------------------

// The labels in which these series differ; all of them for a single one.
export function labelTexts(list) {
    const keys = [...new Set(list.flatMap((series) => Object.keys(series.labels || {})))].sort();
    const differ = keys.filter((key) => list.length === 1 || new Set(list.map((series) => (series.labels || {})[key])).size > 1);
    return list.map((series) => differ.filter((key) => key in (series.labels || {})).map((key) => `${key}=${series.labels[key]}`).join(" "));
}

export function allLabels(labels) {
    return Object.entries(labels || {}).sort().map(([key, text]) => `${key}=${text}`).join(" ");
}
