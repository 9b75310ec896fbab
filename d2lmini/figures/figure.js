// What all figures share: elements, controls, a grid that the arrow keys walk, words for the live region.
// Text always enters as text nodes, never as HTML, so a token can hold anything.

const serial = (window.d2lFigures = (window.d2lFigures || 0) + 1);  // two outputs on a page share no id
let ids = 0;

/** Build every figure of this name that still shows its static version. */
function start(name, build) {
  const waiting = `.d2l-figure[data-figure="${name}"]:not([data-ready])`;
  const run = () => {
    for (const root of document.querySelectorAll(waiting)) {
      const data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
      const stage = h("div", { class: "stage" });
      root.dataset.ready = "";
      build(stage, data);
      root.querySelector(".d2l-static").hidden = true;
      root.append(stage);
    }
  };
  run();
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", run);
}

/** An element with attributes and children; functions are event listeners, text stays text. */
function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== ""));
  return element;
}

/** A token as it is shown: spaces and line ends get a sign. */
function shown(token) {
  return { "": "∅", " ": "␣", "\n": "⏎", "\t": "⇥" }[token] || token;
}

/** A token in a sentence: quoted, and kept apart from the sentence's direction of writing. */
function quote(token) {
  return ["“", h("bdi", {}, shown(token)), "”"];
}

function list(items) {
  return items.flatMap((item, i) => (i ? [", ", item] : [item]));
}

/** The live region: `say(...)` replaces its paragraphs, each an array of text and elements, if they have changed.
 *  It keeps room for so many lines in a wide figure and in a narrow one, so that nothing below it moves. */
function words(wide, narrow) {
  const element = h("div", { class: "words", role: "status", style: `--wide: ${wide}; --narrow: ${narrow}` });
  element.say = (...paragraphs) => {
    const next = paragraphs.filter(Boolean).map((p) => h("p", {}, p));
    if (next.map((p) => p.textContent).join("\n") !== [...element.children].map((p) => p.textContent).join("\n")) {
      element.replaceChildren(...next);
    }
  };
  return element;
}

/** A picture of fixed height that is drawn anew, in real pixels, whenever its width changes. */
function picture(height, draw) {
  const svg = s("svg", { role: "img", height });
  const box = h("div", { class: "picture", style: `height: ${height}px` }, svg);
  let width = 0;
  svg.draw = () => {
    if (!width) return;  // not on the page yet, or in a closed tab
    svg.setAttribute("width", width);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.replaceChildren(...draw(width, height));
  };
  new ResizeObserver(() => { width = box.clientWidth; svg.draw(); }).observe(box);
  return [box, svg];
}

/** One of several: native radio buttons that look like a switch. `options` are [value, text] pairs. */
function choice(label, options, value, change) {
  const name = `d2l-${serial}-${++ids}`;
  return h("fieldset", {}, h("legend", {}, label), h("div", { class: "choice" }, options.map(([key, text]) =>
    h("label", {}, h("input", { type: "radio", name, value: key, checked: key === value ? "" : null, change: () => change(key) }), text))));
}

/** A range with its name and its value in words. `set` moves it, `limit` changes its largest value. */
function slider(label, { min, max, step = 1, value, text = String }, input) {
  const out = h("b", {});
  const range = h("input", { type: "range", min, max, step, "aria-label": label, input: () => { show(); input(+range.value); } });
  range.value = value;  // after min, max and step, or it would be rounded to the defaults
  const show = () => {
    out.textContent = text(+range.value);
    range.setAttribute("aria-valuetext", out.textContent);
  };
  const element = h("div", { class: "slider" }, h("span", { class: "name" }, label, out), range);
  element.limit = (most) => { range.max = most; range.disabled = most <= min; show(); };
  element.set = (number) => { range.value = number; show(); };
  show();
  return element;
}

/** A button that keeps the focus when it cannot act: `able(false)` marks it, and it does nothing. */
function button(label, click, kind = "") {
  const element = h("button", { type: "button", class: kind, click: () => {
    if (element.getAttribute("aria-disabled") !== "true") click();
  } }, label);
  element.able = (yes) => element.setAttribute("aria-disabled", String(!yes));
  return element;
}

/** A grid, queries down and keys across. Arrows, Home and End move; hovering and touching do the same.
 *  draw({rows, cols, letters, cell(i, j) -> {name, class, style}}) shows it; move(i, j) is told where the reader is,
 *  with j = -1 on a row's heading. `most` is the largest number of columns it will ever show. */
function matrix(label, most, move) {
  const element = h("div", { class: "matrix", role: "grid", "aria-label": label, style: `--most: ${most}` });
  let spec, at = [0, -1], places = [];
  const put = (i, j, focus) => {
    at = [Math.max(0, Math.min(i, spec.rows.length - 1)), Math.max(-1, Math.min(j, spec.cols.length - 1))];
    places.forEach((row, r) => row.forEach((cell, c) => { cell.tabIndex = r === at[0] && c - 1 === at[1] ? 0 : -1; }));
    places.forEach((row, r) => {
      row[0].parentNode.classList.toggle("now", r === at[0]);
      row[0].parentNode.setAttribute("aria-selected", String(r === at[0]));
    });
    if (focus) places[at[0]][at[1] + 1].focus();
    move(...at);
  };
  const where = (event) => {
    const cell = event.target.closest("[data-i]");
    return cell && [+cell.dataset.i, +cell.dataset.j];
  };
  let mouse = [];  // a page that scrolls under a resting mouse sends events too; only a moved one counts
  element.addEventListener("mousemove", (event) => {
    const p = where(event), rests = mouse[0] === event.screenX && mouse[1] === event.screenY;
    mouse = [event.screenX, event.screenY];
    if (p && !rests && (p[0] !== at[0] || p[1] !== at[1])) put(...p, element.contains(document.activeElement));
  });
  element.addEventListener("click", (event) => { const p = where(event); if (p) put(...p, true); });
  element.addEventListener("keydown", (event) => {
    const [i, j] = at, last = spec.cols.length - 1;
    const to = { ArrowUp: [i - 1, j], ArrowDown: [i + 1, j], ArrowLeft: [i, j - 1], ArrowRight: [i, j + 1],
      Home: [event.ctrlKey ? 0 : i, -1], End: [event.ctrlKey ? spec.rows.length - 1 : i, last] }[event.key];
    if (!to) return;
    event.preventDefault();
    put(...to, true);
  });
  element.draw = (next) => {
    spec = next;
    element.style.setProperty("--cols", spec.cols.length);
    element.classList.toggle("letters", Boolean(spec.letters));
    const head = (token, role, more) => h("div", { role, class: "head", title: shown(token), ...more }, h("bdi", {}, shown(token)));
    const top = h("div", { role: "row" }, h("div", { role: "columnheader", class: "axis" }, h("span", { class: "unseen" }, "query")),
      spec.cols.map((token) => head(token, "columnheader")));
    places = spec.rows.map((token, i) => [
      head(token, "rowheader", { "data-i": i, "data-j": -1 }),
      ...spec.cols.map((_, j) => {
        const cell = spec.cell(i, j);
        return h("div", { role: "gridcell", class: cell.class, "aria-label": cell.name, "data-i": i, "data-j": j },
          h("i", { style: cell.style }));
      }),
    ]);
    element.replaceChildren(top, ...places.map((row) => h("div", { role: "row" }, row)));
    put(...at, false);
  };
  element.light = (lit) => [...element.firstChild.children].slice(1).forEach((c, j) => c.classList.toggle("lit", lit(j)));
  return element;
}

/** A number with three significant digits: 1,234 · 12.3 · 0.0123 · 1.23e-5. */
function digits(x) {
  if (x === 0 || !Number.isFinite(x)) return x === 0 ? "0" : x > 0 ? "∞" : "−∞";
  const size = Math.abs(x);
  const text = size >= 1e6 || size < 1e-3 ? x.toExponential(2)
    : size >= 100 ? Math.round(x).toLocaleString("en-US") : x.toFixed(size >= 10 ? 1 : size >= 0.1 ? 2 : 4);
  return text.replace("-", "−").replace("e−", "e−").replace("e+", "e");
}

/** A share as per cent; what is not zero never reads as zero. */
function percent(p) {
  if (p === 0) return "0%";
  if (p > 0 && p < 0.0005) return "< 0.1%";
  return p > 0.9995 && p < 1 ? "> 99.9%" : `${(100 * p).toFixed(p < 0.0995 ? 1 : 0)}%`;
}
