/* Live figures: reads the inputs of each <figure class="tp-live">, calls the recorded formulas,
   and rewrites geometry and text inside the figure. It computes no value of its own. */
(() => {
  "use strict";
  const formats = {};

  /* The same rule as tpmodel.formula.units.fixed. */
  function fixed(number, decimals) {
    if (!Number.isFinite(number)) return "–";
    const scale = Number("1e" + decimals);
    const rounded = Math.floor(number * scale + 0.5) / scale + 0;
    formats[decimals] ||= new Intl.NumberFormat("en-US",
      { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
    return formats[decimals].format(rounded);
  }

  const make = (tag, more, ...inside) => {
    const element = Object.assign(document.createElement(tag), more);
    element.append(...inside);
    return element;
  };

  const PREFIXES = [["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3], ["", 1], ["m", 1e-3], ["µ", 1e-6], ["n", 1e-9]];
  const SIGNS = { s: "s", byte: "B", "byte/s": "B/s", FLOP: "FLOP", "FLOP/s": "FLOP/s" };

  /* A value with its unit: four digits, a whole number whole. */
  function amount(value, unit) {
    const sizes = PREFIXES.filter(([, size]) => unit in SIGNS && (unit === "s" ? size <= 1 : size >= 1));
    const [prefix, size] = (value && sizes.find(([, one]) => Math.abs(value) >= one)) || ["", 1];
    const digits = Number.isInteger(value) && size === 1 ? 15 : 4;
    const number = (value / size).toLocaleString("en-US", { maximumSignificantDigits: digits });
    return `${number} ${prefix}${SIGNS[unit] ?? unit}`.trim();
  }

  const ENDS = { _bytes_per_s: "byte/s", _tokens_per_s: "token/s", _bytes: "byte", _tokens: "token", _s: "s" };
  const GREEK = { alpha: "α", varepsilon: "ε", nu: "ν", mu: "μ", eta: "η", lambda: "λ", sigma: "σ", varphi: "φ", chi: "χ", ell: "ℓ", sum: "∑" };

  /* A symbol of the vocabulary, LaTeX, as HTML. */
  function symbolOf(latex) {
    const flat = latex.replace(/\\(?:mathrm|bar)\{(\w+)\}/g, "$1").replace(/\\([a-z]+)/g, (_, word) => GREEK[word] || word);
    return flat.replace(/([_^])(?:\{([^{}]*)\}|(.))/g, (_, how, long, short) => {
      const tag = how === "_" ? "sub" : "sup";
      return `<${tag}>${long || short}</${tag}>`;
    });
  }

  let dialog;
  /* How a number came about: the quantities under it, with their values now; what is under those opens in turn. */
  function explain(said, at, rows, values) {
    const item = (row, open) => {
      const [name, symbol, unit, meaning, how, under] = rows[row];
      const end = meaning ? "" : Object.keys(ENDS).find(one => name.replace(/_\d$/, "").endsWith(one)) || "";
      const value = make("b", {}, amount(values[row], ENDS[end] || unit));
      const words = ` ${meaning || name.replace(end, "").replaceAll("_", " ")}`;
      const head = make("span", { innerHTML: symbol && `<var>${symbolOf(symbol)}</var> = ` }, value, words);
      const from = make("small", {}, make("code", {}, name), under.length ? ` = ${how}` : `: ${how}`);
      if (!under.length) return make("li", {}, head, from);
      return make("li", {}, make("details", { open }, make("summary", {}, head), from,
        make("ul", {}, ...under.map(one => item(one, false)))));
    };
    dialog ??= document.body.appendChild(make("dialog", { className: "tp-why" }));
    dialog.setAttribute("aria-label", `Why ${said}`);
    const close = make("button", { className: "tp-reset", onclick: () => dialog.close() }, "Close");
    dialog.replaceChildren(make("p", {}, make("strong", {}, `Why ${said}?`), close), make("ul", {}, item(at, true)));
    dialog.onclick = event => { if (event.target === dialog) dialog.close(); };
    dialog.onkeydown = event => { if (event.key === "Escape") dialog.close(); };
    dialog.showModal();
  }
  window.tpWhy = explain;

  const NUMBER = /^\d{1,15}(\.\d{1,9})?$/;
  const GROUPED = /^\d{1,3}(,\d{3})+(\.\d+)?$/;  // as the page itself prints numbers
  const EDGE = 0.02;

  /* Data to SVG units: a line, or a line of the logarithm, held a little beyond the axes. */
  function scales([ax, bx, ay, by, xlog, ylog, x0, x1, y0, y1]) {
    const make = (a, b, log, from, to) => {
      const f = log ? Math.log10 : x => x;
      const lo = Math.min(f(from), f(to)), hi = Math.max(f(from), f(to));
      const edge = EDGE * (hi - lo);
      return x => {
        const at = log && x <= 0 ? lo - edge : f(x);
        return a + b * Math.min(Math.max(at, lo - edge), hi + edge);
      };
    };
    return [make(ax, bx, xlog, x0, x1), make(ay, by, ylog, y0, y1)];
  }

  function accepts(control, text) {
    if (control.kind === "choice") return Object.hasOwn(control.options, text);
    const { texts, whole } = control;
    return NUMBER.test(text) && !(whole && text.includes(".")) && Number(text) >= Number(texts[0]) && Number(text) <= Number(texts[texts.length - 1]);
  }

  function valuesOf(control, text) {
    if (control.kind === "choice") return control.options[text];
    return { [control.name]: Number(text + control.suffix) * control.factor };
  }

  function accepted(control) {
    if (control.kind === "choice") return "one of " + Object.keys(control.options).join(", ");
    const { texts, unit, whole } = control;
    return `a ${whole ? "whole " : ""}number from ${texts[0]} to ${texts[texts.length - 1]} ${unit}`.trim();
  }

  function nearest(texts, text) {
    let best = 0;
    texts.forEach((candidate, i) => {
      if (Math.abs(candidate - text) < Math.abs(texts[best] - text)) best = i;
    });
    return best;
  }

  function start(element) {
    const spec = JSON.parse(element.dataset.spec);
    const functions = window.tpFigures[spec.name](fixed);
    const axes = spec.axes.map(scales);
    const controls = Object.fromEntries(spec.controls.map(control => [control.name, control]));
    const state = {};
    const find = name => document.getElementById(`${spec.name}-${name}`);
    const inputOf = name => find("set-" + name);
    const typed = name => element.querySelector(`[data-typed="${name}"]`);
    const note = element.querySelector(".tp-note");
    const preset = element.querySelector(".tp-preset select");
    const above = note.nextSibling;
    /* A word about one control stands at its field, any other above them all. */
    function say(text, name) {
      if (note.textContent !== text) note.textContent = text;
      if (name) inputOf(name).closest(".tp-control").append(note);
      else if (text) element.insertBefore(note, above);
    }

    const marks = functions.marks.map(([name, kind, pair, at, samples]) => {
      const group = find(name);
      const target = group.querySelector({ marker: "use", label: "text" }[kind] || "path");
      return { kind, at, samples, target, head: kind === "line" && group.querySelector("use"), scale: axes[pair] };
    });
    const texts = functions.texts.map(([name, f]) => {
      const label = name.startsWith("label-");
      const target = label ? find(name.slice(6)).querySelector("text") : find(name);
      return [target, f];
    });

    function place(mark, v, numbers) {
      const { kind, at: from, samples, target, head, scale: [sx, sy] } = mark;
      if (kind === "curve") {
        const f = from(v);
        let d = "";
        for (const sample of samples) {
          const [x, y] = f(sample);
          d += `${d ? "L" : "M"}${sx(x).toFixed(2)} ${sy(y).toFixed(2)}`;
        }
        target.setAttribute("d", d);
        return;
      }
      const at = numbers.slice(from, from + (kind === "box" || kind === "line" ? 4 : 2));
      const x = [sx(at[0]), at.length > 2 ? sx(at[2]) : 0], y = [sy(at[1]), at.length > 2 ? sy(at[3]) : 0];
      if (kind === "box") {
        target.setAttribute("d", `M ${x[0]} ${y[0]} L ${x[1]} ${y[0]} L ${x[1]} ${y[1]} L ${x[0]} ${y[1]} z`);
      } else if (kind === "line") {
        target.setAttribute("d", `M ${x[0]} ${y[0]} L ${x[1]} ${y[1]}`);
        if (head) { head.setAttribute("x", x[1]); head.setAttribute("y", y[1]); }
      } else {
        if (kind === "label") {
          mark.drop ??= target.getAttribute("y") - y[0];  // how far matplotlib put the baseline below the middle
          y[0] += mark.drop;
        }
        target.setAttribute("x", x[0]);
        target.setAttribute("y", y[0]);
        if (kind === "label") target.setAttribute("transform", `rotate(0 ${x[0]} ${y[0]})`);
      }
    }

    function write(target, text) {
      if (target.textContent !== text) target.textContent = text;
    }

    function view() {
      return Object.assign({ ...spec.constants }, ...Object.keys(controls).map(name => valuesOf(controls[name], state[name])));
    }

    function redraw() {
      const v = view();
      if (preset) preset.value = Object.keys(spec.presets).find(name => changed(spec.presets[name]).length === 0) || "yours";
      const numbers = functions.numbers(v);
      for (const mark of marks) place(mark, v, numbers);
      for (const [target, f] of texts) {
        const text = f(numbers);
        if (Array.isArray(text)) text.forEach((piece, i) => write(target.children[i], piece));
        else write(target, text);
      }
    }

    function show(name) {
      const control = controls[name], input = inputOf(name), text = state[name];
      if (text !== control.start) input.closest("details")?.setAttribute("open", "");
      if (control.kind === "choice") { input.value = text; return; }
      input.value = nearest(control.texts, text);
      input.setAttribute("aria-valuetext", `${text} ${control.unit}`.trim());
      typed(name).value = text;
    }

    function set(name, text) {
      if (!accepts(controls[name], text)) {
        say(`${controls[name].label}: “${text}” is not accepted; it must be ${accepted(controls[name])}.`, name);
        show(name);
        return;
      }
      state[name] = text;
      say("");
      show(name);
      redraw();
    }

    /* The controls that differ from their starts, or from the texts of a preset. */
    function changed(texts) {
      return spec.controls.filter(({ name, start }) => state[name] !== (texts ? texts[name] : start));
    }

    function remember() {
      const others = location.hash.slice(1).split("&").filter(pair => pair.includes("=") && !pair.startsWith(spec.name + "."));
      const mine = changed().map(({ name }) => `${spec.name}.${name}=${encodeURIComponent(state[name])}`);
      const hash = [...others, ...mine].join("&");
      history.replaceState(null, "", hash ? "#" + hash : location.pathname + location.search);
      element.querySelector(".tp-link").href = "#" + (mine.join("&") || spec.name);
    }

    function reset(texts) {
      for (const { name, start } of spec.controls) { state[name] = texts ? texts[name] : start; show(name); }
      say("");
      redraw();
    }

    /* A link's setting: all of it is right, or the defaults are shown and a note says why. Other links leave the figure alone. */
    function readHash() {
      const mine = location.hash.slice(1).split("&").filter(pair => pair.includes("=") && pair.startsWith(spec.name + "."));
      if (!mine.length) return;
      reset();
      const wanted = {};
      for (const pair of mine) {
        const cut = pair.indexOf("=");
        const name = pair.slice(spec.name.length + 1, cut);
        let text = pair.slice(cut + 1);
        try { text = decodeURIComponent(text); } catch { /* shown as it is */ }
        if (!Object.hasOwn(controls, name) || !accepts(controls[name], text)) {
          const what = Object.hasOwn(controls, name) ? `it must be ${accepted(controls[name])}` : "this figure has no such control";
          say(`The link asks for ${name} = “${text}”, which is not accepted (${what}). The defaults are shown.`);
          return;
        }
        wanted[name] = text;
      }
      for (const name in wanted) { state[name] = wanted[name]; show(name); }
      redraw();
      element.scrollIntoView({ block: "start" });
    }

    for (const name in controls) {
      const input = inputOf(name);
      const read = () => (controls[name].kind === "choice" ? input.value : controls[name].texts[input.value]);
      input.addEventListener("input", () => set(name, read()));
      input.addEventListener("change", remember);
      if (controls[name].kind === "slider") {
        typed(name).addEventListener("change", ({ target }) => {
          const text = target.value.trim();
          set(name, GROUPED.test(text) ? text.replaceAll(",", "") : text);
          remember();
        });
      }
    }
    /* Back and Next move a slider by one place, as an arrow key does, which moves it from these buttons too. */
    for (const button of element.querySelectorAll("[data-step]")) {
      const input = inputOf(button.dataset.step);
      const step = by => {
        input.value = Number(input.value) + by;
        for (const kind of ["input", "change"]) input.dispatchEvent(new Event(kind));
      };
      button.addEventListener("click", () => step(Number(button.dataset.by)));
      button.addEventListener("keydown", event => {
        const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
        if (by) { event.preventDefault(); step(by); }
      });
    }
    for (const number of element.querySelectorAll(".tp-ask")) {
      number.addEventListener("click", () => explain(number.textContent, number.dataset.why, functions.why, functions.values(view())));
    }
    element.querySelector(".tp-reset").addEventListener("click", () => { reset(); remember(); });
    preset?.addEventListener("change", () => { reset(spec.presets[preset.value]); remember(); });
    element.querySelector(".tp-link").addEventListener("click", event => {
      event.preventDefault();
      const copied = navigator.clipboard ? navigator.clipboard.writeText(event.target.href) : Promise.reject();
      copied.then(() => say("The link is copied."), () => { location.href = event.target.href; });
    });
    window.addEventListener("hashchange", readHash);
    reset();
    readHash();
    return spec.name;
  }

  /* On a phone a row of words stands as a block, and each cell says its head. */
  for (const cell of document.querySelectorAll(".tp-words td")) {
    cell.dataset.head = cell.closest("table").tHead.rows[0].cells[cell.cellIndex].textContent;
  }

  /* Tables with verdicts: a bar above the first of them filters all their rows by verdict and by words. */
  function judge(tables, column) {
    const rows = tables.flatMap(table => [...table.tBodies[0].rows]), counts = {};
    for (const row of rows) {
      const verdict = row.cells[column].textContent;
      row.cells[column].dataset.verdict = verdict;
      counts[verdict] = (counts[verdict] || 0) + 1;
    }
    const option = ([verdict, count]) => make("option", { value: verdict }, `${verdict || "all"} (${count})`);
    const choice = make("select", {}, ...[["", rows.length], ...Object.entries(counts)].map(option));
    const search = make("input", { type: "search" }), told = make("output", {});
    const filter = () => {
      const words = search.value.toLowerCase().split(" ");
      for (const row of rows) {
        row.hidden = ![row.cells[column].textContent, ""].includes(choice.value)
          || !words.every(word => row.textContent.toLowerCase().includes(word));
      }
      told.textContent = `${rows.filter(row => !row.hidden).length} of ${rows.length}`;
    };
    const bar = make("form", { className: "tp-filter", oninput: filter, onsubmit: () => false },
      make("label", {}, "Verdict ", choice), make("label", {}, "Search ", search), told);
    bar.setAttribute("role", "search");
    tables[0].closest(".tp-table").before(bar);
    filter();
  }
  const columnOf = table => [...table.tHead.rows[0].cells].findIndex(cell => cell.textContent === "verdict");
  const judged = [...document.querySelectorAll(".tp-words table")].filter(table => columnOf(table) >= 0);
  if (judged.length) judge(judged, columnOf(judged[0]));

  const figures = [...document.querySelectorAll("figure.tp-live")];
  const names = figures.map(start);
  const strangers = location.hash.slice(1).split("&").filter(pair => pair.includes("=")
    && !names.some(name => pair.startsWith(name + ".")));
  if (strangers.length && figures.length) {
    figures[0].querySelector(".tp-note").textContent =
      `The link asks for “${strangers[0]}”, which no figure of this page has. The defaults are shown.`;
  }
})();
