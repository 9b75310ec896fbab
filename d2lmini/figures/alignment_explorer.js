// Rows write, columns are read. Weights come as whole per cents, maps[step][head][row][column].

start("alignment_explorer", (stage, data) => {
  const { maps, source, target, steps } = data, heads = maps[0].length;
  let at = steps.length - 1, head = heads > 1 ? "mean" : "0", row = 0;

  const weight = (i, j) => (head === "mean" ? maps[at].reduce((sum, m) => sum + m[i][j], 0) / heads : maps[at][+head][i][j]) / 100;
  const weights = (i) => source.map((_, j) => weight(i, j));
  const peak = (i) => weights(i).reduce((best, w, j, all) => (w > all[best] ? j : best), 0);
  const look = () => (heads === 1 ? "the only head" : head === "mean" ? `mean of ${heads} heads` : `head ${+head + 1} of ${heads}`);
  const copied = target.some((token) => source.includes(token));

  const live = words(8, 7);
  const grid = matrix("Cross-attention: target tokens down, source tokens across", source.length, (i, j) => {
    row = i;
    const all = weights(i), best = peak(i), hits = target.filter((token, r) => source[peak(r)] === token).length;
    grid.light((k) => all[k] >= 0.25 || k === best);
    live.say(
      [h("b", {}, `Step ${steps[at].toLocaleString("en-US")}, ${look()}. `),
        "About to write ", quote(target[i]), ` (token ${i + 1} of ${target.length}): it looks most at source token ${best + 1}, `, quote(source[best]), `, with ${percent(all[best])}.`],
      j >= 0 ? [`Weight on source token ${j + 1}, `, quote(source[j]), `: ${percent(all[j])}.`] : `An even look would give ${percent(1 / source.length)} to each.`,
      copied ? `In ${hits} of ${target.length} rows the largest weight lies on the token that is written.` : "");
  });

  function draw() {
    grid.draw({
      rows: target, cols: source, letters: [...source].every((token) => [...token].length < 3),
      cell: (i, j) => {
        const w = weight(i, j);
        return { class: "heat", name: `${shown(source[j])}: ${percent(w)}`, style: `--w: ${Math.round(100 * w)}%` };
      },
    });
  }

  stage.classList.add("accent-green", "align");
  stage.append(h("div", { class: "controls" },
    heads > 1 ? choice("Head", [["mean", "Mean"], ...maps[0].map((_, k) => [String(k), String(k + 1)])], head, (k) => { head = k; draw(); }) : "",
    slider("Training step", { min: 0, max: steps.length - 1, value: at, text: (k) => steps[k].toLocaleString("en-US") }, (k) => { at = k; draw(); })),
  h("div", { class: "beside" }, h("div", {}, h("div", { class: "axis" }, "writes ↓   reads →"), grid,
    h("p", { class: "hint legend" }, "0% ", h("span", { class: "ramp" }), " 100%")), live));
  draw();
});
