// One row of attention: score, mask, exponential, weight. Each step shows one more column; all can be seen at once.

/** The weights of a row; a row in which nothing is allowed gets zeros. */
function maskedSoftmax(scores, mask) {
  const top = Math.max(...scores.filter((_, j) => mask[j]));
  const exps = scores.map((score, j) => (mask[j] ? Math.exp(score - top) : 0));
  const sum = exps.reduce((a, b) => a + b, 0);
  return exps.map((e) => (sum > 0 ? e / sum : 0));
}

start("softmax_stepper", (stage, data) => {
  const { labels, reach } = data, scores = [...data.scores], mask = [...data.mask];
  const HEADS = ["key", "score", "mask", "exp", "weight"];
  let step = 1;  // 1 scores, 2 mask, 3 exponentials, 4 weights

  const live = words(3, 6);
  const cell = (role, column, ...children) => h("div", { role, class: `at-${column}` }, children);
  const heads = HEADS.map((text, column) => cell("columnheader", column, text));
  const total = HEADS.map((_, column) => cell("cell", column));
  total[0].append("sum");
  const lines = labels.map((label, j) => {
    const input = h("input", {
      type: "number", class: "number", min: -reach, max: reach, step: 0.1, value: +scores[j].toFixed(4),
      "aria-label": `Score of ${shown(label)}`, input: () => rescore(j, input),
    });
    const toggle = h("button", { type: "button", class: "permit", "aria-label": `May attend to ${shown(label)}`, click: () => {
      mask[j] = !mask[j];
      step = Math.max(step, 2);
      draw();
    } });
    const exp = h("span", { class: "numeral" }), bar = h("span", { class: "bar" }), weight = h("span", { class: "numeral" });
    const row = h("div", { role: "row" }, cell("rowheader", 0, h("bdi", {}, shown(label))), cell("cell", 1, input), cell("cell", 2, toggle),
      cell("cell", 3, exp), cell("cell", 4, weight, h("span", { class: "track" }, bar)));
    return { row, input, toggle, exp, weight, bar };
  });
  const grid = h("div", { role: "table", class: "steps", "aria-label": "Masked softmax, one row" },
    h("div", { role: "row" }, heads), lines.map((line) => line.row), h("div", { role: "row", class: "total" }, total));
  const back = button("Back", () => { step -= 1; draw(); });
  const next = button("Next step", () => { step += 1; draw(); }, "main");
  const reset = button("Reset", () => {
    scores.splice(0, scores.length, ...data.scores);
    mask.splice(0, mask.length, ...data.mask);
    lines.forEach(({ input }, j) => { input.value = +scores[j].toFixed(4); input.removeAttribute("aria-invalid"); });
    step = 1;
    draw();
  });

  function rescore(j, input) {
    const number = input.valueAsNumber, good = Number.isFinite(number) && Math.abs(number) <= reach;
    input.setAttribute("aria-invalid", String(!good));
    if (!good) {
      live.say([h("b", {}, "That score is not used. "), `Give a number from −${reach} to ${reach}; until then ${digits(scores[j])} counts.`]);
      return;
    }
    scores[j] = number;
    draw();
  }

  function sentence(exps, sum, weights) {
    const open = labels.filter((_, j) => mask[j]).length, name = (j) => quote(labels[j]);
    const most = weights.indexOf(Math.max(...weights));
    if (step === 1) {
      const best = scores.indexOf(Math.max(...scores));
      return [[h("b", {}, "Step 1 of 4, scores. "), "Query times key, divided by the root of the width. The best match is ", name(best), ", ", digits(scores[best]), "."],
        "Type other scores if you like."];
    }
    if (step === 2) {
      return [[h("b", {}, "Step 2 of 4, mask. "), `${open} of ${labels.length} keys are allowed; the others get −∞ in place of their score.`],
        "Press a key's mask to allow or hide it."];
    }
    if (!open) return [[h("b", {}, `Step ${step} of 4. `), "No key is allowed: the exponentials sum to 0, and 0/0 is not a number. The package gives such a row weights of zero."]];
    if (step === 3) {
      return [[h("b", {}, "Step 3 of 4, exponentials. "), `All are positive; exp(−∞) is 0. They sum to ${digits(sum)}.`],
        "One more in the score is a factor of 2.72 here."];
    }
    return [[h("b", {}, "Step 4 of 4, weights. "), `Each exponential divided by ${digits(sum)}. Together they are 1; `, name(most), ` gets ${percent(weights[most])}.`],
      ["In order: ", list(weights.map((w, j) => [h("bdi", {}, shown(labels[j])), ` ${percent(w)}`])), "."]];
  }

  function draw() {
    const exps = scores.map((score, j) => (mask[j] ? Math.exp(score) : 0));
    const sum = exps.reduce((a, b) => a + b, 0), weights = maskedSoftmax(scores, mask);
    grid.dataset.step = step;
    heads.forEach((head, column) => head.classList.toggle("current", column === step));
    lines.forEach((line, j) => {
      line.row.classList.toggle("masked", step > 1 && !mask[j]);
      line.toggle.setAttribute("aria-pressed", String(mask[j]));
      line.toggle.textContent = mask[j] ? "✓" : "−∞";
      line.exp.textContent = step > 2 ? digits(exps[j]) : "";
      line.weight.textContent = step > 3 ? percent(weights[j]) : "";
      line.weight.dataset.value = weights[j];
      line.bar.style.width = step > 3 ? `${100 * weights[j]}%` : "0";
    });
    total[3].textContent = step > 2 ? digits(sum) : "";
    total[4].textContent = step > 3 ? percent(weights.reduce((a, b) => a + b, 0)) : "";
    back.able(step > 1);
    next.able(step < 4);
    live.say(...sentence(exps, sum, weights));
  }

  stage.classList.add("accent-blue");
  stage.append(grid, h("div", { class: "controls below" }, back, next, reset), live);
  draw();
});
