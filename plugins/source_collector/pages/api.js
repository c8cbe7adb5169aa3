// Requests to the server, and whether it can be reached.

export class Failure extends Error {
    constructor(status, message) {
        super(message);
        this.status = status;
    }
}

// ok; gone: it does not respond; expired: the session has ended; forbidden
let state = "ok";
const watchers = new Set();
let retryTimer = 0, retryMs = 0;
let skew = 0; // the server's clock minus ours, in seconds

export const connection = () => state;
export const now = () => Date.now() / 1000 + skew;

// Calls back when the state changes. Returns a function that ends it.
export function watchConnection(callback) {
    watchers.add(callback);
    return () => watchers.delete(callback);
}

function setState(next) {
    if (state === next)
        return;
    const before = state;
    state = next;
    for (const callback of [...watchers])
        callback(next, before);
}

const RETRY_MIN_MS = 500, RETRY_MAX_MS = 10000;

function retryLater() {
    if (retryTimer)
        return;
    retryMs = Math.min(RETRY_MAX_MS, retryMs ? retryMs * 2 : RETRY_MIN_MS);
    retryTimer = setTimeout(() => {
        retryTimer = 0;
        status().catch(() => {});
    }, retryMs);
}

export function retryNow() {
    clearTimeout(retryTimer);
    retryTimer = retryMs = 0;
    status().catch(() => {});
}

function url(path, parameters) {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters || {}))
        if (value !== null && value !== undefined && value !== "")
            query.append(name, value);
    const text = query.toString();
    return text ? `${path}?${text}` : path;
}

export async function get(path, parameters, signal) {
    let reply;
    try {
        reply = await fetch(url(path, parameters), {signal, headers: {Accept: "application/json"}, credentials: "same-origin"});
    } catch (error) {
        if (error.name !== "AbortError") {
            setState("gone");
            retryLater();
        }
        throw error.name === "AbortError" ? error : new Failure(0, "the server does not respond");
    }
    if (reply.status === 401 || reply.status === 403) {
        setState(reply.status === 401 ? "expired" : "forbidden");
        retryLater(); // another tab may open a session
        throw new Failure(reply.status, await messageOf(reply));
    }
    setState("ok");
    retryMs = 0;
    if (!reply.ok)
        throw new Failure(reply.status, await messageOf(reply));
    return reply.json();
}

async function messageOf(reply) {
    try {
        return (await reply.json()).message || `status ${reply.status}`;
    } catch (error) {
        return `status ${reply.status}`;
    }
}

export async function status() {
    const found = await get("/api/v1/status");
    if (typeof found.now === "number")
        skew = found.now - Date.now() / 1000;
    return found;
}

// All pages of a list, up to a limit.
export async function allSeries(parameters, limit = 1000, signal = undefined) {
    let list = [], after = null;
    do {
        const part = await get("/api/v1/series", {...parameters, limit: Math.min(500, limit - list.length), after}, signal);
        list = list.concat(part.series);
        after = part.next;
    } while (after && list.length < limit);
    return {series: list, more: Boolean(after)};
}

// ---- Live values -----------------------------------------------------------------------------

const LIVE_RETRY_MS = 2000;

// The server's events, while the page is visible. on: {values(list), series(), status(), lost(), back()}
export class Live {
    constructor(parameters, on) {
        this.path = url("/api/v1/live", parameters);
        this.on = on;
        this.source = null;
        this.timer = 0;
        this.wasOpen = false;
        this.onVisibility = () => (document.hidden ? this.stop() : this.start());
        document.addEventListener("visibilitychange", this.onVisibility);
        this.unwatch = watchConnection((next) => next === "ok" && !document.hidden && this.start());
        if (!document.hidden)
            this.start();
    }

    start() {
        if (this.source || !this.path)
            return;
        clearTimeout(this.timer);
        const source = this.source = new EventSource(this.path);
        source.addEventListener("open", () => {
            if (this.wasOpen)
                this.call("back");
            this.wasOpen = true;
        });
        source.addEventListener("values", (event) => this.call("values", JSON.parse(event.data)));
        for (const name of ["series", "status"])
            source.addEventListener(name, () => this.call(name));
        source.addEventListener("lost", (event) => {
            for (const name of JSON.parse(event.data).events ? ["lost", "series", "status"] : ["lost"])
                this.call(name);
        });
        source.addEventListener("error", () => this.fail());
    }

    call(name, argument) {
        if (this.on[name])
            this.on[name](argument);
    }

    // The browser's own attempts would go on without a word; an ordinary request shows why it failed.
    fail() {
        this.stop();
        status().catch(() => {});
        this.timer = setTimeout(() => state === "ok" && !document.hidden && this.start(), LIVE_RETRY_MS);
    }

    stop() {
        clearTimeout(this.timer);
        if (this.source)
            this.source.close();
        this.source = null;
    }

    close() {
        this.path = "";
        this.stop();
        this.unwatch();
        document.removeEventListener("visibilitychange", this.onVisibility);
    }
}
