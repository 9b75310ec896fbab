// FLOPs in matrix products alone, by the formulas of d2lmini/costs.py; a test holds the two together.

function encoderFlops(n, d, layers, f = Math.round((8 * d) / 3)) {
  return layers * (8 * n * d * d + 4 * n * n * d + 6 * n * d * f);
}

function perceiverFlops(n, m, d, layers, f = Math.round((8 * d) / 3)) {
  const read = 4 * n * d * d + 4 * m * d * d + 4 * m * n * d + 6 * m * d * f;
  return read + encoderFlops(m, d, layers, f);
}

/** The smallest N at which full self-attention costs more; the difference crosses zero once. */
function crossover(m, d, layers) {
  const dearer = (n) => encoderFlops(n, d, layers) > perceiverFlops(n, m, d, layers);
  let low = 0, high = 1;
  while (!dearer(high)) [low, high] = [high, 2 * high];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (dearer(middle)) high = middle; else low = middle;
  }
  return high;
}

start("cost_dial", (stage, data) => {
  const layers = data.num_layers, dial = { n: data.num_inputs, m: data.num_latents, d: data.d_model };
  const [low, high] = data.ranges.num_inputs;
  const comma = (x) => x.toLocaleString("en-US");
  const UNITS = [[1e15, "PFLOP"], [1e12, "TFLOP"], [1e9, "GFLOP"], [1e6, "MFLOP"], [1e3, "kFLOP"]];
  const flops = (x) => {
    const [unit, name] = UNITS.find(([size]) => x >= size) || [1, "FLOP"];
    return `${digits(x / unit)} ${name}`;
  };

  const live = words(4, 7);
  const bars = h("div", { class: "bars" });
  const [chart, svg] = picture(270, plot);
  const power = (name, key, [least, most]) => slider(name, { min: least, max: most, value: Math.log2(dial[key]), text: (k) => comma(2 ** k) },
    (k) => { dial[key] = 2 ** k; draw(); });

  const sizes = Array.from({ length: 4 * (high - low) + 1 }, (_, k) => 2 ** (low + k / 4));
  function now() {
    const { n, m, d } = dial;
    const curves = [sizes.map((x) => encoderFlops(x, d, layers)), sizes.map((x) => perceiverFlops(x, m, d, layers))];
    return { n, m, d, curves, full: encoderFlops(n, d, layers), read: perceiverFlops(n, m, d, layers), cross: crossover(m, d, layers),
      bottom: Math.floor(Math.log10(Math.min(curves[0][0], curves[1][0]))), top: Math.ceil(Math.log10(Math.max(curves[0].at(-1), curves[1].at(-1)))) };
  }

  function plot(W, H) {
    const { n, curves, full, read, cross, bottom, top } = now();
    const LEFT = 40, RIGHT = 26, TOP = 26, BOTTOM = 44;
    const x = (v) => LEFT + ((Math.log2(v) - low) / (high - low)) * (W - LEFT - RIGHT);
    const y = (v) => H - BOTTOM - ((Math.log10(v) - bottom) / (top - bottom)) * (H - TOP - BOTTOM);
    const path = (values) => "M" + sizes.map((v, k) => `${x(v).toFixed(1)},${y(values[k]).toFixed(1)}`).join("L");
    const every = top - bottom > 7 ? 2 : 1, apart = W < 430 ? 4 : 3, anchor = x(cross) > W / 2 ? "end" : "start";
    const rungs = Array.from({ length: top - bottom + 1 }, (_, k) => bottom + k).filter((k) => (k - bottom) % every === 0);
    const ticks = Array.from({ length: high - low + 1 }, (_, k) => low + k).filter((k) => (k - low) % apart === 0);
    const text = (cls, px, py, to, ...inside) => s("text", { class: cls, x: px, y: py, "text-anchor": to }, inside);
    return [
      rungs.map((k) => [s("path", { class: "rule", d: `M${LEFT},${y(10 ** k)}H${W - RIGHT}` }),
        text("soft", LEFT - 6, y(10 ** k) + 4, "end", "10", s("tspan", { dy: -5, "font-size": 10 }, String(k)))]),
      ticks.map((k) => text("soft", x(2 ** k), H - BOTTOM + 19, "middle", comma(2 ** k))),
      text("soft", 0, 12, "start", "FLOPs"), text("soft", (LEFT + W - RIGHT) / 2, H - 6, "middle", "inputs N"),
      s("path", { d: path(curves[0]), class: "curve full" }), s("path", { d: path(curves[1]), class: "curve read" }),
      cross < 2 ** low || cross > 2 ** high ? [] : [s("path", { d: `M${x(cross)},${TOP - 8}V${H - BOTTOM}`, class: "cross" }),
        s("circle", { cx: x(cross), cy: y(encoderFlops(cross, dial.d, layers)), r: 5, class: "crossing" }),
        text("", x(cross) + (anchor === "end" ? -8 : 8), 12, anchor, `equal at N = ${comma(cross)}`)],
      s("circle", { cx: x(n), cy: y(full), r: 6, class: "dot full" }), s("circle", { cx: x(n), cy: y(read), r: 6, class: "dot read" }),
    ].flat(3);
  }

  function draw() {
    const { n, m, d, full, read, cross, bottom, top } = now();
    bars.replaceChildren(...[["Full self-attention", full, "accent-blue"], ["Perceiver", read, "accent-purple"]].map(([name, value, accent]) =>
      h("div", { class: `line ${accent}` }, h("span", {}, name), h("span", { class: "track" },
        h("span", { class: "bar", style: `width: ${(100 * (Math.log10(value) - bottom)) / (top - bottom)}%` })),
      h("span", { class: "numeral", "data-flops": value }, flops(value)))));
    svg.setAttribute("aria-label", `FLOPs against inputs N on logarithmic axes; the curves cross at N = ${comma(cross)}.`);
    svg.draw();
    const verdict = full > read ? `the Perceiver costs ${digits(full / read)} times less` : full < read ? `the Perceiver costs ${digits(read / full)} times more` : "both cost the same";
    live.say([h("b", {}, `N = ${comma(n)}, M = ${comma(m)}, D = ${comma(d)}: `), `full self-attention ${flops(full)}, Perceiver ${flops(read)}; ${verdict}.`],
      `The Perceiver is the cheaper one from N = ${comma(cross)} on. ` +
      `Of full self-attention's cost, ${percent((layers * 4 * n * n * d) / full)} grows with N squared.`);
  }

  stage.classList.add("accent-blue", "cost");
  stage.append(h("div", { class: "controls" }, power("Inputs N", "n", data.ranges.num_inputs), power("Latents M", "m", data.ranges.num_latents),
    power("Width D", "d", data.ranges.d_model)), bars, chart, live,
  h("p", { class: "hint" }, `Bars and axes are logarithmic. One forward pass, matrix products alone, ${layers} block${layers > 1 ? "s" : ""} in each design; the Perceiver reads once, without an output query.`));
  draw();
});
