// Elements. Texts become text nodes, never markup: what comes from outside cannot add elements.

// h("a", {class: "x", href: "#/", onclick: f, hidden: false}, "text", element, null, [...])
export function h(tag, properties, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties || {})) {
        if (value === null || value === undefined || value === false)
            continue;
        if (name.startsWith("on"))
            element.addEventListener(name.slice(2), value);
        else
            element.setAttribute(name, value === true ? "" : String(value));
    }
    append(element, children);
    return element;
}

export function append(element, children) {
    for (const child of [children].flat(Infinity))
        if (child !== null && child !== undefined && child !== false)
            element.append(child instanceof Node ? child : document.createTextNode(String(child)));
    return element;
}

export function replace(element, ...children) {
    element.replaceChildren();
    return append(element, children);
}

// Sets a text only if it differs, so that nothing is drawn or read out anew.
export function setText(element, text) {
    if (element.textContent !== text)
        element.textContent = text;
}

const SHAPES = {
    search: ["M11 11l3.5 3.5", "M7 2.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9"],
    sun: ["M8 5a3 3 0 1 0 0 6a3 3 0 1 0 0-6", "M8 1v1.6M8 13.4V15M1 8h1.6M13.4 8H15M3 3l1.2 1.2M11.8 11.8L13 13M13 3l-1.2 1.2M4.2 11.8L3 13"],
    moon: ["M13.5 9.8A6 6 0 0 1 6.2 2.5a6 6 0 1 0 7.3 7.3z"],
    check: ["M3 8.5l3.2 3.2L13 5"],
    warning: ["M8 2.2L14.4 13.4H1.6z", "M8 6.5v3.4M8 11.6v.2"],
    error: ["M8 1.8a6.2 6.2 0 1 0 0 12.4a6.2 6.2 0 1 0 0-12.4", "M5.8 5.8l4.4 4.4M10.2 5.8l-4.4 4.4"],
    copy: ["M5.5 5.5h8v8h-8z", "M10.5 5.5v-3h-8v8h3"],
    download: ["M8 2v8M4.8 7L8 10.2L11.2 7M2.5 13.5h11"],
    back: ["M9.5 3.5L5 8l4.5 4.5"],
    out: ["M7 2.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9M11 11l3.5 3.5M5 7h4"],
    clock: ["M8 2a6 6 0 1 0 0 12a6 6 0 1 0 0-12", "M8 4.6V8l2.3 1.5"],
};

export function icon(name) {
    const space = "http://www.w3.org/2000/svg";
    const picture = document.createElementNS(space, "svg");
    picture.setAttribute("viewBox", "0 0 16 16");
    picture.setAttribute("class", "icon");
    picture.setAttribute("aria-hidden", "true");
    for (const line of SHAPES[name]) {
        const path = document.createElementNS(space, "path");
        path.setAttribute("d", line);
        picture.append(path);
    }
    return picture;
}

// A command in a box with a button that copies it.
export function commandBox(text) {
    const code = h("code", {}, text);
    const label = h("span", {}, "Copy");
    const copy = async () => {
        try {
            await navigator.clipboard.writeText(text);
            label.textContent = "Copied";
        } catch (error) {
            getSelection().selectAllChildren(code);
            label.textContent = "Press Ctrl+C";
        }
        setTimeout(() => { label.textContent = "Copy"; }, 2500);
    };
    return h("div", {class: "command"}, h("pre", {tabindex: "0"}, code),
        h("button", {type: "button", class: "button", "aria-label": "Copy the command", onclick: copy}, icon("copy"), label));
}

// A page's place for a message that says what to do next.
export function notice(kind, title, ...children) {
    return h("section", {class: "notice " + kind}, h("h2", {}, title), children);
}

// The head of a table. Names of columns of numbers begin with "#": they are aligned with these.
export function tableHead(names) {
    return h("thead", {}, h("tr", {}, names.map((name) => h("th", {scope: "col", class: name.startsWith("#") ? "right" : null}, name.replace("#", "")))));
}
