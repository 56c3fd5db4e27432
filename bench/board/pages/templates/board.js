"use strict";
// Copy buttons on every page. On the main page: choices, sorting, search, and the panel of a number. What is chosen
// stands in the address after "#", so that every view can be linked and the back button works. Without this script every table is
// there, and every number links to its run.
(() => {
  // --- small tools ---

  const make = (name, attributes = {}, ...inside) => fill(document.createElement(name), attributes, inside);
  const draw = (name, attributes = {}, ...inside) => fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, inside);
  function fill(element, attributes, inside) {
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...inside.flat().filter((one) => one !== null && one !== ""));
    return element;
  }
  const fixed = (value, digits) => value.toFixed(digits).replace("-", "\u2212");
  // an end of an interval has more digits if its sign would be rounded away
  const end = (value, digits) => signed(value, Number(value.toFixed(digits)) || !value ? digits : digits + 2);
  const signed = (value, digits) => (Number(value.toFixed(digits)) > 0 ? "+" : "") + fixed(Number(value.toFixed(digits)), digits);
  const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

  // Without the clipboard, which pages from a disk may lack, the text is shown in a selected field.
  function copy(button, text) {
    const done = () => (button.textContent = "copied");
    if (navigator.clipboard) return navigator.clipboard.writeText(text).then(done, () => offerText(button, text));
    offerText(button, text);
  }

  function offerText(button, text) {
    const box = make("textarea", { readonly: "", rows: "7", "aria-label": "citation" });
    box.value = text;
    button.replaceWith(box);
    box.focus();
    box.select();
  }

  function withCopy(box) {
    const button = make("button", { type: "button", "aria-live": "polite" }, "copy"), text = box.querySelector("pre");
    button.addEventListener("click", () => {
      getSelection().selectAllChildren(text);
      button.textContent = navigator.clipboard || document.execCommand("copy") ? "copied" : "selected";
      navigator.clipboard?.writeText(text.textContent);
    });
    box.append(button);
    return box;
  }
  const commandBox = (text) => withCopy(make("div", { class: "command" }, make("pre", { tabindex: "0" }, text)));
  document.querySelectorAll(".command").forEach(withCopy);

  // On paper everything is unfolded.
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => (one.open = true)));

  // The place that the address names; none for a malformed one, such as "#%".
  function anchored() {
    try {
      return document.getElementById(decodeURIComponent(location.hash.slice(1)));
    } catch {
      return null;
    }
  }

  // An address inside what is folded unfolds it; an address with choices unfolds the tables.
  const unfold = () => {
    const hasChoices = location.hash.includes("=");
    const target = hasChoices ? document.getElementById("all-tables") : anchored();
    for (let one = target; one; one = one.parentElement) if (one.matches("details")) one.open = true;
    if (target && !hasChoices) target.scrollIntoView({ block: "nearest" });
  };
  addEventListener("hashchange", unfold);
  unfold();

  const source = document.getElementById("board-data"), main = document.querySelector("main");
  if (!source) return;
  const data = JSON.parse(source.textContent);

  // --- the tables, as they came ---

  const tables = [...document.querySelectorAll(".scores")].map((section) => {
    const anchor = section.querySelector("h2").id, heads = [...section.querySelector("thead tr").cells];
    const table = { section, anchor, heads, rows: [], body: section.querySelector("tbody"), ...section.dataset };
    for (const row of table.body.rows) {
      if (row.matches(".printed")) {
        table.rows.at(-1).below.push(row);
        continue;
      }
      const place = table.rows.length, [head] = row.cells, { runs, cells } = data.tables[anchor].rows[place], { cite, differs } = data.notes[anchor][place];
      table.rows.push({ row, place, below: [], text: head.textContent.toLowerCase(), name: head.querySelector("a").textContent,
        variant: head.querySelector("small")?.textContent ?? "", ...row.dataset, runs, cells, cite, differs });
    }
    return table;
  });
  const headline = document.querySelector("h1"), ownHeadline = headline.textContent;
  const baseOf = (table) => table.rows.find((one) => one.baseline);

  // --- the state, and the address that holds it ---

  const TABLE = ["setting", "backbone", "suite", "length"]; // choices of tables
  const defaults = { ...Object.fromEntries(TABLE.map((key) => [key, tables[0]?.[key] ?? ""])), q: "", sort: "", cell: "" };
  const lists = Object.fromEntries([...document.querySelectorAll("[data-key]")].map((list) => [list.dataset.key, list]));
  let state = { ...defaults };
  const address = (next) => "#" + new URLSearchParams(Object.entries(next).filter(([key, value]) => key === "suite" || value !== defaults[key]));

  function read() {
    const hash = location.hash.slice(1), section = hash && document.getElementById(hash)?.closest(".scores"), table = tables.find((one) => one.section === section);
    if (table) return { ...defaults, ...Object.fromEntries(TABLE.map((key) => [key, table[key]])) };
    if (hash && !hash.includes("=")) return { ...state, cell: "" };
    const found = { ...defaults };
    for (const [key, value] of new URLSearchParams(hash)) {
      const known = !TABLE.includes(key) || value === "all" || tables.some((one) => one[key] === value);
      if (Object.hasOwn(defaults, key) && known) found[key] = value;
    }
    return found;
  }

  function go(next) {
    history.pushState(null, "", address(next));
    state = next;
    show();
  }

  const fits = (table, wanted) => TABLE.every((key) => wanted[key] === "all" || wanted[key] === table[key]);

  // Where no table has all that is chosen, the other choices follow the new one.
  function chosen(key, value) {
    const next = { ...state, [key]: value, cell: "" };
    if (!TABLE.includes(key) || value === "all" || tables.some((table) => fits(table, next))) return next;
    const agreeing = (table) => TABLE.filter((other) => next[other] === "all" || next[other] === table[other]).length;
    const best = tables.filter((table) => table[key] === value).sort((a, b) => agreeing(b) - agreeing(a))[0];
    for (const other of TABLE) if (best && next[other] !== "all") next[other] = best[other];
    return next;
  }

  // --- what is shown ---

  const matches = (one, wanted) =>
    wanted.q.toLowerCase().split(/\s+/).every((word) => one.text.includes(word));
  const matching = (table, wanted) => (fits(table, wanted) ? table.rows.filter((one) => matches(one, wanted)) : []);
  const matchingAll = (wanted) => tables.flatMap((table) => matching(table, wanted)).length;

  function show() {
    for (const table of tables) {
      table.shown = sorted(table, matching(table, state));
      table.section.hidden = !table.shown.length;
      for (const one of table.rows) for (const row of [one.row, ...one.below]) row.hidden = !table.shown.includes(one);
      table.body.prepend(...table.shown.flatMap((one) => [one.row, ...one.below]));
      table.body.querySelectorAll("td > a").forEach((link) => (link.tabIndex = -1)); // Tab reaches one number of a table
      (table.shown[0]?.row.querySelector("td > a") ?? {}).tabIndex = 0;
    }
    // The headline is the finding of the first table that is shown, and says of which if it is another than the page's own.
    const first = tables.find((table) => !table.section.hidden);
    if (first) headline.textContent = first === tables[0] ? ownHeadline : first.finding;
    for (const figure of document.querySelectorAll("figure[data-suites]")) {
      const suites = figure.dataset.suites.split(" ").filter(Boolean);
      figure.hidden = state.suite !== "all" && suites.length > 0 && !suites.includes(state.suite);
    }
    const rows = matchingAll(state), all = tables.filter((table) => fits(table, state)).flatMap((table) => table.rows).length;
    document.querySelector(".empty").hidden = rows > 0;
    document.querySelector(".switches output").textContent = rows === all ? count(rows, "row") : `${rows} of ${count(all, "row")}`;
    Object.keys(lists).forEach(offer);
    const search = document.getElementById("search");
    if (search !== document.activeElement) search.value = state.q;
    panel();
  }

  // The options of a choice: where each leads, and how many rows it shows next to the other choices, so that they add up to "all".
  function offer(key) {
    const list = lists[key];
    for (const link of list.querySelectorAll("a")) {
      const value = link.dataset.value, rows = matchingAll({ ...state, [key]: value });
      link.href = address(chosen(key, value));
      link.querySelector("small").textContent = rows || "";
      if (value === state[key]) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }

  // --- order ---

  const textOf = (cell) => cell?.querySelector("a, b")?.textContent ?? cell?.firstChild?.textContent ?? "";
  const numberIn = (text) => (/\d/.test(text) ? Number(text.replace("\u2212", "-")) : NaN);
  const cellAt = (table, one, name) => one.row.cells[table.heads.findIndex((head) => head.dataset.sort === name)];

  function sorted(table, rows) {
    const back = state.sort.startsWith("-"), name = state.sort.slice(back ? 1 : 0), head = table.heads.find((one) => one.dataset.sort === name);
    for (const one of table.heads) one.removeAttribute("aria-sort");
    if (!head) return rows;
    const rising = name === "method" || (head.matches(".cost") && name !== "seeds") || "lower" in head.dataset;
    const value = (one) => {
      const cell = cellAt(table, one, name);
      return name === "method" ? one.text : cell.dataset.v ? Number(cell.dataset.v) : numberIn(textOf(cell));
    };
    const values = new Map(rows.map((one) => [one, value(one)])), by = rising !== back ? 1 : -1;
    head.setAttribute("aria-sort", rising !== back ? "ascending" : "descending");
    return rows.sort((a, b) => {
      const x = values.get(a), y = values.get(b);
      return x !== x || y !== y ? (x !== x) - (y !== y) : x < y ? -by : x > y ? by : 0; // what has no number comes last
    });
  }

  for (const head of tables.flatMap((table) => table.heads).filter((one) => one.dataset.sort)) {
    const button = make("button", { type: "button", title: "sort" }, ...head.childNodes), name = head.dataset.sort;
    button.addEventListener("click", () => go({ ...state, cell: "", sort: state.sort === name ? `-${name}` : state.sort === `-${name}` ? "" : name }));
    head.replaceChildren(button);
  }

  // --- the numbers: a click opens the panel, arrow keys lead from one to the next ---

  for (const table of tables) {
    table.body.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key], cell = event.target.closest("td");
      if (!by || !cell || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      const at = table.shown.findIndex((one) => one.row.contains(cell)) + by[0], cells = [...(table.shown[at]?.row.cells ?? [])].filter((one) => one.offsetParent && one.querySelector("a"));
      const next = by[1] ? cells[cells.indexOf(cell) + by[1]] : cells.find((one) => one.cellIndex === cell.cellIndex);
      next?.querySelector("a").focus();
    });
    table.body.addEventListener("click", (event) => {
      const link = event.target.closest("td > a");
      if (!link || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
      event.preventDefault();
      const one = table.rows.find((other) => other.row.contains(link)), head = table.heads[link.parentElement.cellIndex];
      go({ ...state, cell: [table.anchor, one.run, head.dataset.task].join("/") });
    });
  }

  // A row's cell in a column: its data, and the number as it is printed.
  function cellOf(table, one, task) {
    const cell = one.cells[task];
    return cell ? { ...cell, of: table, task, name: one.name, variant: one.variant, text: textOf(cellAt(table, one, task)) } : null;
  }

  function difference(cell, base) {
    if (!cell || !base) return "";
    const digits = cell.decimals, by = signed(numberIn(cell.text) - numberIn(base.text), digits);
    if (!cell.against?.verdict) return `${by}; not tested`;
    const { verdict, difference: value, ci_low: low, ci_high: high, ci_level: level, p } = cell.against;
    return `${verdict}, ${signed(value, digits)} [${end(low, digits)}, ${end(high, digits)}] (${Number((100 * level).toPrecision(3))} % CI); p ${p < 0.001 ? "below 0.001" : Number(p.toPrecision(2))}`;
  }

  // Seeds as dots on a line, with the interval of the mean; a tick where a paper's value is.
  function strip(cells) {
    const { decimals: d, task, printed } = cells[0], all = cells.flatMap((cell) => [...cell.values, ...(cell.spread ? [cell.spread.low, cell.spread.high] : [])]);
    if (printed) all.push(printed.value);
    const least = Math.min(...all), most = Math.max(...all), room = (most - least) * 0.06 || 0.5, left = 84, right = 336;
    const x = (value) => left + ((value - least + room) / (most - least + 2 * room)) * (right - left), top = printed ? 32 : 14, bottom = top - 12 + cells.length * 24;
    const parts = [draw("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom })];
    for (const [value, anchor] of least === most ? [[least, "start"]] : [[least, "start"], [most, "end"]]) parts.push(draw("text", { x: x(value), y: bottom + 14, "text-anchor": anchor }, fixed(value, d)));
    if (printed) {
      parts.push(draw("line", { class: "tick", x1: x(printed.value), x2: x(printed.value), y1: 16, y2: bottom }));
      parts.push(draw("text", { x: Math.min(Math.max(x(printed.value), 130), 290), y: 11, "text-anchor": "middle" }, `published ${fixed(printed.value, d)}`));
    }
    cells.forEach((cell, i) => {
      const y = top + i * 24, of = i ? "other" : "first";
      parts.push(draw("text", { class: of, x: 0, y: y + 4 }, cell.name.slice(0, 14)));
      if (cell.spread) parts.push(draw("path", { class: `bar ${of}`, d: `M${x(cell.spread.low)} ${y - 4}v8m0-4H${x(cell.spread.high)}m0-4v8` }));
      parts.push(...cell.values.map((value) => draw("circle", { class: of, cx: x(value), cy: y, r: 3.5 })));
    });
    const label = `${task}: ${cells[0].values.map((value) => fixed(value, d)).join(", ")}`;
    return draw("svg", { class: "strip", viewBox: `0 0 340 ${bottom + 18}`, role: "img", "aria-label": label }, parts);
  }

  // --- the panel of a number ---

  let open;

  function panel() {
    close();
    const [anchor, run, ...task] = state.cell.split("/"), table = tables.find((one) => one.anchor === anchor && !one.section.hidden);
    const one = table?.shown.find((row) => row.run === run), cell = one && cellOf(table, one, task.join("/"));
    if (!cell) return;
    const base = baseOf(table), other = base && base !== one ? cellOf(table, base, cell.task) : null, facts = [], d = cell.decimals;
    const fact = (name, text) => facts.push(make("dt", {}, name), make("dd", {}, text));
    if (cell.values.length > 1) fact("seeds", cell.values.map((value) => fixed(value, d)).join(", "));
    if (cell.spread) fact("interval", `${fixed(cell.spread.low, d)} to ${fixed(cell.spread.high, d)}; ${100 * cell.spread.level} % interval over ${cell.spread.covers}`);
    if (base === one) fact("baseline", "this row: the others are compared with it");
    if (other) fact(table.versus || `vs ${base.name}`, difference(cell, other));
    if (cell.printed) fact("published", `${fixed(cell.printed.value, d)}${cell.printed.std ? ` \u00b1${cell.printed.std}` : ""}: ${cell.printed.source.replace(":", ", table ")}${cell.printed.own ? "" : ", copied"}; ours minus it ${signed(numberIn(cell.text) - cell.printed.value, d)}`);
    fact("items", cell.n.toLocaleString("en"));
    fact("protocol", cell.of.protocol);
    if (one.differs.length) fact("unlike others", one.differs.join("; "));
    const from = cellAt(table, one, cell.task).querySelector("a"), tasks = table.section.querySelector(".switch-tasks"), what = one.row.querySelector("a").title;
    const shut = make("button", { type: "button", "aria-label": "close" }, "\u00d7");
    shut.addEventListener("click", leave);
    const box = make("div", { class: "panel", role: "dialog", "aria-label": `${one.name}, ${cell.task}`, tabindex: "-1" },
      make("header", {}, make("h3", {}, one.name, make("small", {}, ` ${one.variant} `), `${cell.task} ${cell.text}`), shut), what ? make("p", { class: "quiet" }, what) : "",
      strip(other ? [cell, other] : [cell]), make("dl", {}, facts), ...again(one), make("p", {}, citeButton(one)), ...one.runs.map(files));
    if (tasks && !from.offsetParent) tasks.checked = true; // a linked number of a task
    from.closest(".scroll").after(box);
    const place = from.getBoundingClientRect(), around = main.getBoundingClientRect();
    box.style.top = `${place.bottom - around.top + 6}px`;
    box.style.left = `${Math.max(16, Math.min(place.left - around.left - 48, around.width - box.offsetWidth - 32))}px`;
    open = { box, from };
    from.setAttribute("aria-expanded", "true");
    box.focus({ preventScroll: true });
    box.scrollIntoView({ block: "nearest" });
  }

  function citeButton(one) {
    const button = make("button", { type: "button", "aria-live": "polite" }, "copy citation");
    button.addEventListener("click", () => copy(button, one.cite));
    return button;
  }

  const again = ({ run }) => data.rows[run].repeatable
    ? [commandBox(data.rows[run].command), make("p", {}, "Run this where the folder of the runs is. The files that the plan names, such as a training text, must be there; run.json lists their checksums.")]
    : [make("p", {}, `This row is ${data.rows[run].command}.`)];

  function files(run) {
    const { seed, by, links } = data.runs[run];
    const named = Object.entries(links).map(([name, href]) => make("a", { href }, name === "page" ? (seed === null ? "run" : `seed ${seed}`) : name));
    return make("p", {}, named.flatMap((link, i) => (i ? [", ", link] : [link])), by ? `; run by ${by}` : "");
  }

  function close() {
    open?.box.remove();
    open = open?.from.removeAttribute("aria-expanded");
  }

  function leave() {
    open.from.focus({ preventScroll: true });
    close();
    state = { ...state, cell: "" };
    history.replaceState(null, "", address(state));
  }

  document.addEventListener("keydown", (event) => event.key === "Escape" && open && leave());
  document.addEventListener("pointerdown", (event) => open && !open.box.contains(event.target) && !event.target.closest("td > a") && leave());

  function arrive() {
    state = read();
    show();
    // ":target" matches nothing yet while the page is loading
    const target = document.getElementById(location.hash.slice(1)) ?? document.querySelector(":target");
    const folded = target?.closest("details");
    if (folded) folded.open = true;
    target?.scrollIntoView();
  }

  for (const hidden of document.querySelectorAll("[data-scripted]")) hidden.hidden = false;
  document.getElementById("search").addEventListener("input", (event) => {
    state = { ...state, q: event.target.value, cell: "" };
    history.replaceState(null, "", address(state));
    show();
  });
  document.documentElement.classList.add("scripted");
  addEventListener("hashchange", arrive);
  arrive();
})();
