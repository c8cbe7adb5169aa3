// The chosen theme is set before anything is drawn. A classic script: modules come later.
(function () {
    "use strict";
    let chosen = null;
    try { chosen = localStorage.getItem("weir.theme"); } catch (error) { /* storage is off */ }
    if (chosen === "light" || chosen === "dark")
        document.documentElement.dataset.theme = chosen;
}());
