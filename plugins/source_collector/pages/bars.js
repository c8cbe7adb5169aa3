// The strip below the head: the server cannot be reached, and what to do.

import * as api from "./api.js";
import {commandBox, h, icon, replace} from "./dom.js";

const place = document.getElementById("banners");

function gone() {
    return h("div", {class: "banner warning"}, icon("warning"), h("p", {}, h("b", {}, "The server does not respond. "),
        "Reconnecting; the page goes on by itself as soon as it is back. Is it still running?"),
        h("button", {type: "button", class: "button", onclick: api.retryNow}, "Try now"));
}

function expired() {
    return h("div", {class: "banner error"}, icon("error"), h("div", {}, h("p", {}, h("b", {}, "The session has expired. "),
        "This prints an address that opens a new one:"), commandBox("weir serve --url")),
        h("button", {type: "button", class: "button", onclick: api.retryNow}, "Try now"));
}

function forbidden() {
    return h("div", {class: "banner error"}, icon("error"), h("p", {}, h("b", {}, "No permission. "),
        "The server does not accept requests for this address (", location.host, "). Open it by the address that ",
        h("code", {}, "weir serve --url"), " prints, or ask its operator for a token."),
        h("button", {type: "button", class: "button", onclick: api.retryNow}, "Try now"));
}

const BANNERS = {gone, expired, forbidden};

export function watch() {
    api.watchConnection((state) => replace(place, BANNERS[state] ? BANNERS[state]() : null));
}
