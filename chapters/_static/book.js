// Three small helps for the reader; without scripts the page reads the same, only plainer.
(function () {
  "use strict";

  // A block quote that opens with one of these bold words becomes a box of that kind.
  const KINDS = {
    "in words": "words",
    "prediction": "prediction",
    "check your sources": "sources",
    "what this does not show": "limits",
    "try it": "try",
    "try this": "try",
    "mask convention": "convention",
  };

  function markBoxes() {
    for (const quote of document.querySelectorAll("article blockquote")) {
      const lead = quote.querySelector(":scope > p:first-of-type > strong:first-child, :scope > div > p:first-of-type > strong:first-child");
      if (!lead) continue;
      const kind = KINDS[lead.textContent.trim().replace(/[.:]$/, "").toLowerCase()];
      quote.classList.add("box");
      if (kind) quote.classList.add("box-" + kind);
    }
  }

  // What scrolls sideways inside its own frame must be reachable with the keyboard.
  function makeScrollable() {
    const frames = "article pre, article .pst-scrollable-table-container, article div.math, article mjx-container[display]";
    for (const frame of document.querySelectorAll(frames)) {
      if (frame.scrollWidth > frame.clientWidth + 1) {
        frame.tabIndex = 0;
        if (!frame.hasAttribute("role")) frame.setAttribute("role", "group");
        if (!frame.hasAttribute("aria-label")) frame.setAttribute("aria-label", "scrolls sideways");
      } else if (frame.getAttribute("aria-label") === "scrolls sideways") {
        for (const name of ["tabindex", "role", "aria-label"]) frame.removeAttribute(name);
      }
    }
  }

  // The sidebar's title stands outside the theme's own landmarks, and the buttons of its tree have no names.
  function nameSidebar() {
    const bar = document.querySelector(".bd-sidebar-primary");
    if (!bar || bar.hasAttribute("role")) return;
    bar.setAttribute("role", "complementary");
    bar.setAttribute("aria-label", "Pages of the book");
    for (const summary of document.querySelectorAll(".bd-sidebar-primary summary, .bd-sidebar-secondary summary")) {
      const link = summary.closest("li") && summary.closest("li").querySelector("a");
      if (!summary.textContent.trim()) summary.setAttribute("aria-label", "Pages below " + (link ? link.textContent.trim() : "this one"));
    }
  }

  function start() {
    nameSidebar();
    markBoxes();
    makeScrollable();
    window.addEventListener("resize", makeScrollable);
    window.addEventListener("load", () => {
      const typeset = window.MathJax && window.MathJax.startup && window.MathJax.startup.promise;
      Promise.resolve(typeset).then(makeScrollable);
    });
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
