// Rows are queries, columns keys. The same rules as d2lmini.masks: causal AND padding; padding hides keys, never rows.

start("mask_explorer", (stage, data) => {
  const settings = {
    bidirectional: { accent: "accent-blue", keys: data.tokens },
    causal: { accent: "accent-orange", keys: data.tokens },
    cross: { accent: "accent-green", keys: data.source },
  };
  const most = Math.max(data.tokens.length, data.source.length);
  let setting = "bidirectional", padding = 0;

  const keyCount = () => settings[setting].keys.length;
  const isPadding = (j) => j >= keyCount() - padding;
  const future = (i, j) => setting === "causal" && j > i;
  const allowed = (i, j) => !isPadding(j) && !future(i, j);
  const key = (j) => (isPadding(j) ? "‹pad›" : settings[setting].keys[j]);
  const query = (i) => (setting !== "cross" && isPadding(i) ? "‹pad›" : data.tokens[i]);
  const seen = (i) => settings[setting].keys.map((_, j) => j).filter((j) => allowed(i, j));

  function sentence(i) {
    const keys = seen(i), n = keyCount();
    const first = [h("b", {}, `Row ${i + 1}, query `, quote(query(i))), `, sees ${keys.length} of ${n} keys`];
    return keys.length ? [first, ": ", list(keys.map((j) => h("bdi", {}, shown(key(j))))), "."]
      : [first, ". With nothing allowed its weights are all zero, and so is what it collects."];
  }

  function meaning(i) {
    if (setting === "cross") {
      return "Every row sees the same keys: the whole source is there before the first token is written.";
    }
    if (isPadding(i)) return "The row is padding itself: it is computed, and nobody reads what comes out.";
    if (setting === "bidirectional") {
      return "It sees both sides, and itself: to make this a task, a token must be hidden in the input.";
    }
    if (i === data.tokens.length - 1) return "It predicts the token that comes after the text.";
    return isPadding(i + 1) ? "After it comes padding, so its prediction is not scored."
      : ["It predicts the next token, ", quote(query(i + 1)), ", which it does not see."];
  }

  function single(i, j) {
    if (j < 0) {
      const all = data.tokens.reduce((sum, _, r) => sum + seen(r).length, 0);
      return `In the whole grid ${all} of ${data.tokens.length * keyCount()} places are allowed.`;
    }
    const why = isPadding(j) ? "hidden, it is padding" : future(i, j) ? "hidden, it lies in the future" : "visible";
    return [`Key ${j + 1}, `, quote(key(j)), `: ${why}.`];
  }

  const live = words(8, 8);
  const grid = matrix("Mask: queries down, keys across", most, (i, j) => {
    grid.light((k) => allowed(i, k));
    live.say(sentence(i), meaning(i), single(i, j));
  });

  function draw() {
    stage.className = `stage mask ${settings[setting].accent}`;
    grid.draw({
      rows: data.tokens.map((_, i) => query(i)),
      cols: settings[setting].keys.map((_, j) => key(j)),
      cell: (i, j) => ({
        class: allowed(i, j) ? "seen" : isPadding(j) ? "pad" : setting === "causal" && j === i + 1 ? "target" : "hidden-key",
        name: `${shown(key(j))}: ${allowed(i, j) ? "visible" : "hidden"}`,
      }),
    });
  }

  const pads = slider("Padding at the end of the keys", { min: 0, max: keyCount(), value: 0 }, (n) => { padding = n; draw(); });
  const kinds = choice("Attention", [["bidirectional", "Bidirectional"], ["causal", "Causal"], ["cross", "Cross"]], setting, (kind) => {
    setting = kind;
    padding = Math.min(padding, keyCount());
    pads.limit(keyCount());
    pads.set(padding);
    draw();
  });

  const legend = h("p", { class: "hint legend" }, h("i", { class: "seen" }), "may be seen ", h("i", { class: "hidden-key" }), "hidden ",
    h("i", { class: "pad" }), "padding ", h("span", { class: "only-causal" }, h("i", { class: "target" }), "to be predicted"));
  stage.append(h("div", { class: "controls" }, kinds, pads),
    h("div", { class: "beside" }, h("div", {}, h("div", { class: "axis" }, "queries ↓   keys →"), grid, legend), live));
  draw();
});
