// The rules of d2lmini.sampling.next_token_distribution, in the page; a test holds the two together.

/** Probabilities from logits; topK and topP may be null. Ties are kept in the order of the ids. */
function nextTokenDistribution(logits, temperature, topK, topP) {
  const top = Math.max(...logits), exps = logits.map((z) => Math.exp((z - top) / temperature));
  const total = exps.reduce((a, b) => a + b, 0), p = exps.map((e) => e / total);
  const order = p.map((_, i) => i).sort((a, b) => p[b] - p[a] || a - b);
  const keep = (kept) => {
    const sum = kept.reduce((a, i) => a + p[i], 0);
    p.forEach((_, i) => { p[i] = kept.includes(i) ? p[i] / sum : 0; });
  };
  let kept = order;
  if (topK !== null) keep(kept = order.slice(0, topK));
  if (topP !== null && topP < 1) {
    let before = 0;  // what the more likely tokens already cover
    keep(kept.filter((i, rank) => {
      const inside = rank === 0 || before < topP - 1e-9;
      before += p[i];
      return inside;
    }));
  }
  return p;
}

/** Logits as they are stored: two digits to the base 64 for each, the hundredths below the largest. */
function unpack(text) {
  const digit = (c) => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".indexOf(c);
  return Array.from({ length: text.length / 2 }, (_, i) => -(64 * digit(text[2 * i]) + digit(text[2 * i + 1])) / 100);
}

/** Uniform numbers in [0, 1) from a seed (mulberry32), so that a page draws the same text for every reader. */
function randomFrom(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

start("generation_explorer", (stage, data) => {
  const { tokens, nodes, prompt } = data, ROWS = Math.min(10, tokens.length);
  const how = { temperature: 1, topK: tokens.length, topP: 1 };
  let path = [], random = randomFrom(1);

  const live = words(3, 6);
  const text = h("p", { class: "written", "aria-label": "The text so far" });
  const rows = h("div", { class: "bars", role: "group", "aria-label": "Most likely next characters", style: `min-height: calc(${ROWS + 1} * 1.85rem)`, keydown: (event) => {
    const all = [...rows.querySelectorAll("button")], i = all.indexOf(document.activeElement);
    const to = { ArrowDown: i + 1, ArrowUp: i - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined || !all[to]) return;
    event.preventDefault();
    all[to].focus();
  } });
  const number = (name, options, set) => slider(name, options, (value) => { set(value); draw(); });
  const sliders = [
    [number("Temperature", { min: 0.1, max: 2, step: 0.05, value: 1, text: (v) => v.toFixed(2) }, (v) => { how.temperature = v; }), 1],
    [number("Top-k", { min: 1, max: tokens.length, value: tokens.length, text: (v) => (v === tokens.length ? "all" : String(v)) }, (v) => { how.topK = v; }), tokens.length],
    [number("Top-p", { min: 0.05, max: 1, step: 0.05, value: 1, text: (v) => (v === 1 ? "all" : v.toFixed(2)) }, (v) => { how.topP = v; }), 1],
  ];

  const back = button("Back", () => { path.pop(); draw(); });
  const pick = button("Draw the next one", () => {
    const p = now().p;
    let left = random(), choice = p.indexOf(Math.max(...p));
    for (let i = 0; i < p.length; i++) {
      if (p[i] > 0 && left < p[i]) { choice = i; break; }
      left -= p[i];
    }
    path.push(choice);
    draw();
  }, "main");
  const reset = button("Reset", () => {
    path = [];
    random = randomFrom(1);
    Object.assign(how, { temperature: 1, topK: tokens.length, topP: 1 });
    sliders.forEach(([element, value]) => element.set(value));
    draw();
  });

  function now() {
    const stored = nodes[path.join(" ")];
    if (!stored) return null;
    const logits = unpack(stored);
    const order = logits.map((_, i) => i).sort((a, b) => logits[b] - logits[a] || a - b);
    return { order, plain: nextTokenDistribution(logits, 1, null, null),
      p: nextTokenDistribution(logits, how.temperature, how.topK === tokens.length ? null : how.topK, how.topP === 1 ? null : how.topP) };
  }

  function row(i, { p, plain }) {
    const child = [...path, i].join(" ") in nodes;
    const element = button("", () => {
      const place = [...rows.querySelectorAll("button")].indexOf(element);
      path.push(i);
      draw();
      (rows.querySelectorAll("button")[place] || back).focus();
    }, "guess line");
    element.setAttribute("aria-label", `${shown(tokens[i])}, ${p[i] > 0 ? percent(p[i]) : "cut"}${child ? "" : ", goes beyond what is stored"}`);
    element.dataset.p = p[i];
    element.able(child);
    element.append(h("span", { class: "token" }, h("bdi", {}, shown(tokens[i])), child ? h("span", { class: "more" }, " ›") : ""),
      h("span", { class: "track" }, h("span", { class: "ghost", style: `width: ${100 * plain[i]}%` }), h("span", { class: "bar", style: `width: ${100 * p[i]}%` })),
      h("span", { class: "numeral" }, p[i] > 0 ? percent(p[i]) : "cut"));
    return element;
  }

  function draw() {
    const state = now();
    text.replaceChildren(h("bdi", { class: "prompt" }, prompt), h("bdi", { class: "grown" }, path.map((i) => tokens[i]).join("")), h("span", { class: "caret" }));
    back.able(path.length > 0);
    pick.able(Boolean(state));
    if (!state) {
      rows.replaceChildren();
      live.say([h("b", {}, "End of what is stored. "), "The page holds the model's answers for the most probable prefixes only. Go back, or, in a notebook, make a larger tree from your model."]);
      return;
    }
    const { order, p } = state, kept = p.filter((x) => x > 0).length;
    const others = order.slice(ROWS), rest = others.reduce((a, i) => a + p[i], 0);
    rows.replaceChildren(...order.slice(0, ROWS).map((i) => row(i, state)),
      others.length ? h("div", { class: "line guess" }, h("span", { class: "token rest" }, `${others.length} others`), h("span", { class: "track" },
        h("span", { class: "bar", style: `width: ${100 * rest}%` })), h("span", { class: "numeral", "data-rest": rest }, rest > 0 ? percent(rest) : "cut")) : "");
    const entropy = p.reduce((a, x) => (x > 0 ? a - x * Math.log(x) : a), 0);
    live.say([h("b", {}, `${kept} of ${tokens.length} tokens can follow`), "; the most likely is ", quote(tokens[order[0]]), ` with ${percent(p[order[0]])}. `,
      `Entropy ${entropy.toFixed(2)} nats: as uncertain as an even choice among ${digits(Math.exp(entropy))}.`],
    path.length ? ["Written so far: ", quote(path.map((i) => tokens[i]).join("")), "."] : "Choose a character to write it, or draw one.");
  }

  stage.classList.add("accent-orange", "fill");
  stage.append(h("div", { class: "controls" }, sliders.map(([element]) => element)), text, rows,
    h("div", { class: "controls below" }, back, pick, reset), live,
    h("p", { class: "hint" }, "Bars: what would be drawn from. Outlines: the distribution as trained. A character with › has stored continuations."));
  draw();
});
