"use strict";
// What the panel of a number tells: seeds, interval, baseline, a paper's value, the command, the files. Drawn from the page's own data.
window.numberPanel = (board) => {
  const WORDS = { b: "better", w: "worse", u: "inconclusive" };

  // --- small tools ---

  const make = (name, attributes = {}, ...inside) => fill(document.createElement(name), attributes, inside);
  const draw = (name, attributes = {}, ...inside) => fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, inside);
  function fill(element, attributes, inside) {
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...inside.flat().filter((one) => one !== null && one !== ""));
    return element;
  }
  const fixed = (value, digits) => value.toFixed(digits).replace("-", "\u2212");
  const signed = (value, digits) => (Number(value.toFixed(digits)) > 0 ? "+" : "") + fixed(Number(value.toFixed(digits)), digits);
  const count = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;

  // ``verdict``: [class, difference, low, high, level, p], or 0.
  // ``one`` and ``base``: name, cell, mean and runs of the row and of the baseline's; what the head of the panel and the rest of it are.
  function told(one, base, isBase, verdict, data, c) {
    const column = data.columns[c], d = column.d, [values, low, high, printed, n, covers] = one.cell;
    const facts = [];
    const fact = (name, ...inside) => facts.push(make("dt", {}, name), make("dd", {}, ...inside));
    if (values.length > 1) fact("seeds", values.map((value) => fixed(value, d)).join(", "));
    if (low !== high && low !== undefined) fact("interval", `${fixed(low, d)} to ${fixed(high, d)}; ${data.covers[covers ?? 0]}`);
    if (isBase) fact("baseline", "this row: the others are compared with it");
    else if (base) fact(`less ${base.name}`, difference(verdict, one.mean - base.mean, column));
    if (printed) fact("printed", `${fixed(printed[0], d)}${printed[3] ? ` \u00b1${printed[3]}` : ""}: ${printed[1]}${printed[2] ? "" : ", copied"}; ours less that ${signed(one.mean - printed[0], d)}`);
    fact("items", (n || column.n).toLocaleString("en"));
    fact("protocol", column.how);
    const [what, rest, needs] = one.repeat.map((at) => board.texts[at]), command = `${what} ${rest}`;
    return [
      make("h3", {}, one.name, make("small", {}, ` ${one.beside} `), column.task, " ", fixed(one.mean, d)),
      strip([one, ...(base && !isBase ? [base] : [])], column, printed),
      make("dl", {}, facts),
      withCopy(make("div", { class: "command" }, make("pre", { tabindex: "0" }, command))),
      needs ? make("p", { class: "needs" }, needs) : "",
      ...one.runs.map((run) => files(run, column)),
    ];
  }

  function difference(verdict, by, column) {
    const d = column.d;
    if (!verdict) return `${signed(by, d)}; not tested`;
    const [letter, value, low, high, level, p] = verdict;
    return `${WORDS[letter]}, ${signed(value, d)} [${signed(low, d)}, ${signed(high, d)}] (${level} % CI); p ${p < 0.001 ? "below 0.001" : p.toPrecision(2)}`;
  }

  function files(run, column) {
    const [folder, seed, curve, grade, held = folder, page = folder] = board.runs[run];
    const link = (words, file, at = held) => make("a", { href: `${at}/${file}` }, words);
    const links = [link(seed === null ? "run" : `seed ${seed}`, "index.html", page), link("record", "run.json")];
    if (column.file) links.push(link("predictions", column.file));
    if (curve) links.push(link("curve", "curve.jsonl"));
    return make("p", {}, links.flatMap((one, i) => (i ? [", ", one] : [one])), `; ${grade}`);
  }

  // Seeds as dots on a line, the interval, the baseline's under it, a tick where a paper's value is.
  function strip(rows, column, printed) {
    const all = rows.flatMap(({ cell: [values, low, high] }) => [...values, ...(low !== high ? [low, high] : [])]);
    if (printed) all.push(printed[0]);
    const least = Math.min(...all), most = Math.max(...all), room = (most - least) * 0.06 || 0.5, left = 84, right = 336;
    const x = (value) => left + ((value - least + room) / (most - least + 2 * room)) * (right - left);
    const top = printed ? 32 : 14, bottom = top - 12 + rows.length * 24, parts = [];
    if (printed) {
      const at = x(printed[0]);
      parts.push(draw("line", { class: "tick", x1: at, x2: at, y1: 16, y2: bottom }),
        draw("text", { x: at, y: 11, "text-anchor": at < 130 ? "start" : at > 290 ? "end" : "middle" }, `printed ${fixed(printed[0], column.d)}`));
    }
    rows.forEach(({ name, cell: [values, low, high] }, i) => {
      const [dot, bar] = i ? ["basedot", "base"] : ["seed", "bar"], y = top + i * 24;
      parts.push(draw("text", { x: 0, y: y + 4, class: i ? "" : "value" }, name.slice(0, 14)));
      if (low !== high) parts.push(draw("path", { class: bar, fill: "none", d: `M${x(low)} ${y - 4}v8m0-4H${x(high)}m0-4v8` }));
      for (const value of values) parts.push(draw("circle", { class: dot, cx: x(value), cy: y, r: 3.5 }));
    });
    parts.push(draw("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }));
    for (const value of [least, most].slice(0, least === most ? 1 : 2)) {
      parts.push(draw("text", { x: x(value), y: bottom + 14, "text-anchor": value === least ? "start" : "end" }, fixed(value, column.d)));
    }
    const label = `${column.task}: ${rows[0].cell[0].map((value) => fixed(value, column.d)).join(", ")}`;
    return draw("svg", { class: "strip", viewBox: `0 0 340 ${bottom + 18}`, role: "img", "aria-label": label }, parts);
  }

  function withCopy(box) {
    const button = make("button", { type: "button" }, "copy");
    button.addEventListener("click", async () => {
      const pre = box.querySelector("pre");
      try {
        await navigator.clipboard.writeText(pre.textContent);
      } catch {
        getSelection().selectAllChildren(pre); // where a page may not write to the clipboard: one key is left to press
        document.execCommand("copy");
      }
      button.textContent = "copied";
      setTimeout(() => (button.textContent = "copy"), 1500);
    });
    box.append(button);
    return box;
  }
  return { make, told, withCopy, count, strip, difference, WORDS };
};
