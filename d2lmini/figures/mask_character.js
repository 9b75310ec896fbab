// A text as a row of characters; the chosen one is hidden, and the model's guesses for its place stand beside it.

/** The places grouped into words, each with the space behind it, so that lines break between words. */
function wordsOf(tokens) {
  return tokens.reduce((groups, token, i) => {
    if (i === 0 || (tokens[i - 1] === " " && token !== " ") || groups.at(-1).length >= 14) groups.push([]);
    groups.at(-1).push(i);
    return groups;
  }, []);
}

start("mask_character", (stage, data) => {
  const { tokens, predictions } = data, most = Math.max(...predictions.map((p) => p.length));
  const right = tokens.filter((token, i) => predictions[i][0][0] === token).length;
  const live = words(2, 4), bars = h("div", { class: "bars", style: `min-height: calc(${most} * 1.7rem)` });
  let at = Math.max(0, tokens.findIndex((token, i) => predictions[i][0][0] !== token));

  const places = tokens.map((token, i) => h("span", {
    role: "option", class: predictions[i][0][0] === token ? "place" : "place wrong", "data-i": i,
    "aria-label": `Character ${i + 1}, ${shown(token)}`, click: () => choose(i, true),
  }, h("bdi", {}, token === " " ? "\u00a0" : shown(token))));
  const text = h("div", { class: "text", role: "listbox", "aria-label": "The text: choose the character to hide", keydown: (event) => {
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, ArrowUp: above(-1), ArrowDown: above(1), Home: 0, End: tokens.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    choose(to, true);
  } }, wordsOf(tokens).map((word) => h("span", { class: "word" }, word.map((i) => places[i]))));

  /** The place in the line above or below that is nearest, as the text happens to be broken. */
  function above(direction) {
    const here = places[at].getBoundingClientRect();
    const line = places.map((e, i) => [i, e.getBoundingClientRect()]).filter(([, r]) => (r.top - here.top) * direction > 2);
    const next = direction * Math.min(...line.map(([, r]) => r.top * direction));
    const near = line.filter(([, r]) => Math.abs(r.top - next) < 3).sort((a, b) => Math.abs(a[1].left - here.left) - Math.abs(b[1].left - here.left));
    return near.length ? near[0][0] : at;
  }

  function choose(i, focus) {
    at = Math.max(0, Math.min(i, tokens.length - 1));
    const token = tokens[at], guesses = predictions[at], rank = guesses.findIndex(([guess]) => guess === token);
    places.forEach((place, j) => {
      place.tabIndex = j === at ? 0 : -1;
      place.setAttribute("aria-selected", String(j === at));
    });
    if (focus) places[at].focus();
    bars.replaceChildren(...guesses.map(([guess, p]) => h("div", { class: guess === token ? "line guess accent-green" : "line guess" },
      h("span", { class: "token" }, h("bdi", {}, shown(guess)), guess === token ? " ✓" : ""),
      h("span", { class: "track" }, h("span", { class: "bar", style: `width: ${100 * p}%` })),
      h("span", { class: "numeral" }, percent(p)))));
    const [best, p] = guesses[0];
    const verdict = rank === 0 ? "; that is right."
      : rank > 0 ? ["; what stood there, ", quote(token), `, is guess ${rank + 1} with ${percent(guesses[rank][1])}.`]
        : ["; what stood there, ", quote(token), `, is not among the first ${guesses.length}.`];
    const around = (a, b) => h("bdi", {}, tokens.slice(Math.max(0, a), b).map(shown).join(""));
    live.say([h("b", {}, `Character ${at + 1} of ${tokens.length} is hidden`), ": ", around(at - 8, at), "▢", around(at + 1, at + 9), "."],
      ["The first guess is ", quote(best), ` with ${percent(p)}`, verdict]);
  }

  stage.classList.add("accent-blue", "fill");
  stage.append(text, bars, live, h("p", { class: "hint" },
    `Hidden one at a time, ${right} of ${tokens.length} are guessed right. The others are underlined with dots. ✓ marks what stood there.`));
  choose(at, false);
});
