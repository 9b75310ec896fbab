// Gradient norms along the stack: one line per wiring, embeddings left, output right, logarithmic.
// wirings[name][depth index] = [means, lowest, highest], each one number per block.

start("gradient_highway", (stage, data) => {
  const { depths, wirings } = data, names = Object.keys(wirings);
  const accents = ["accent-orange", "accent-blue", "accent-green"];
  let at = depths.length - 1, block = 1;

  const every = names.flatMap((name) => wirings[name].flat(2));
  const bottom = Math.log10(Math.min(...every)) - 0.05, top = Math.log10(Math.max(...every)) + 0.05;
  const live = words(4, 8);
  const [chart, svg] = picture(280, plot);
  const depth = () => depths[at];

  function plot(W, H) {
    const LEFT = 54, RIGHT = 14, TOP = 24, BOTTOM = 44;
    const x = (k) => LEFT + (depth() === 1 ? 0.5 : (k - 1) / (depth() - 1)) * (W - LEFT - RIGHT);
    const y = (v) => H - BOTTOM - ((Math.log10(v) - bottom) / (top - bottom)) * (H - TOP - BOTTOM);
    const line = (values, from = 0) => values.map((v, k) => `${k || from ? "L" : "M"}${x(k + 1).toFixed(1)},${y(v).toFixed(1)}`).join("");
    const text = (cls, px, py, to, ...inside) => s("text", { class: cls, x: px, y: py, "text-anchor": to }, inside);
    const rungs = [];
    for (let e = Math.floor(bottom); e <= top; e++) for (const m of top - bottom > 3 ? [1] : top - bottom > 1.2 ? [1, 2, 5] : [1, 2, 3, 4, 6, 8]) {
      if (Math.log10(m) + e >= bottom && Math.log10(m) + e <= top) rungs.push(m * 10 ** e);
    }
    const gap = Math.max(1, Math.ceil((depth() * 26) / (W - LEFT - RIGHT)));
    const ticks = Array.from({ length: depth() }, (_, k) => k + 1).filter((k) => k === 1 || k === depth() || (k % gap === 0 && k - 1 >= gap && depth() - k >= gap));
    return [
      rungs.map((v) => [s("path", { class: "rule", d: `M${LEFT},${y(v)}H${W - RIGHT}` }), text("soft", LEFT - 6, y(v) + 4, "end", String(+v.toPrecision(1)))]),
      ticks.map((k) => text("soft", x(k), H - BOTTOM + 19, "middle", String(k))),
      text("soft", 0, 12, "start", "gradient norm"), text("soft", (LEFT + W - RIGHT) / 2, H - 6, "middle", "block (1: above the embeddings)"),
      s("path", { class: "cross", d: `M${x(block)},${TOP}V${H - BOTTOM}` }),
      names.map((name, w) => {
        const [mean, low, high] = wirings[name][at], back = high.map((_, k) => high.length - 1 - k);
        return s("g", { class: accents[w] },
          s("path", { class: "band", d: `${line(low)}${back.map((k) => `L${x(k + 1).toFixed(1)},${y(high[k]).toFixed(1)}`).join("")}Z` }),
          s("path", { class: `curve line-${w}`, d: line(mean) }), s("circle", { class: "dot", cx: x(block), cy: y(mean[block - 1]), r: 5.5 }));
      }),
    ].flat(3);
  }

  function draw() {
    svg.setAttribute("aria-label", `Gradient norm against block for ${names.join(" and ")}, ${depth()} layers, logarithmic.`);
    svg.draw();
    const range = (name) => wirings[name][at].map((values) => digits(values[block - 1]));
    const place = block === 1 ? ", the lowest" : block === depth() ? ", the highest" : "";
    live.say([h("b", {}, `${depth()} layer${depth() > 1 ? "s" : ""}, block ${block}${place}. `), "Gradient below it: ",
      list(names.map((name) => { const [mean, low, high] = range(name); return `${name} ${mean} (${low} to ${high})`; })), "."],
    ["From the highest block down to the lowest it changes by a factor of ",
      list(names.map((name) => { const mean = wirings[name][at][0]; return `${digits(mean[0] / mean.at(-1))} under ${name}`; })), "."]);
  }

  const blocks = slider("Block", { min: 1, max: depth(), value: 1, text: (k) => `${k} of ${depth()}` }, (k) => { block = k; draw(); });
  const layers = slider("Layers", { min: 0, max: depths.length - 1, value: at, text: (k) => String(depths[k]) }, (k) => {
    const share = depth() > 1 ? (block - 1) / (depth() - 1) : 0;  // stay at the same height in the stack
    at = k;
    block = 1 + Math.round(share * (depth() - 1));
    blocks.limit(depth());
    blocks.set(block);
    draw();
  });
  chart.addEventListener("mousemove", (event) => {
    const box = chart.getBoundingClientRect(), share = (event.clientX - box.left - 54) / (box.width - 68);
    const next = 1 + Math.round(Math.max(0, Math.min(1, share)) * (depth() - 1));
    if (next === block) return;
    block = next;
    blocks.set(block);
    draw();
  });

  stage.classList.add("accent-blue");
  stage.append(h("div", { class: "controls" }, layers, blocks), h("p", { class: "legend" }, names.map((name, w) =>
    [h("span", { class: `key ${accents[w]}` }, h("i", { class: `stroke line-${w}` }), name), " "])), chart, live,
  h("p", { class: "hint" }, "Lines: geometric means over the seeds; bands: their range. The axis is the same at every depth."));
  draw();
});
