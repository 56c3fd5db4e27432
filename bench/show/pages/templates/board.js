"use strict";
// The main page: choices, sorting, search and the panel of a number. All state is in the address after "#", so that every view can
// be linked and the back button works. Without this script every table is there, and every number is a link to its run.
(() => {
  const board = JSON.parse(document.getElementById("board-data").textContent);
  const main = document.querySelector("main");
  const FILTERS = ["setting", "backbone", "suite"];
  const COUNTED = [...FILTERS, "text"];
  const KEYS = [...COUNTED, "baseline", "show", "q", "sort", "rows", "compare", "cell"];
  const MOST_ROWS = 100;
  const tools = window.numberPanel(board), { make, told, withCopy, count, WORDS } = tools;
  const sideBySide = window.compareRows(board, tools);
  const GRADES = ["submitted", "own", "checkpoint", "retrained"];

  // --- the tables, as they came ---

  const tables = [...document.querySelectorAll(".scores")].map((section) => {
    const anchor = section.querySelector("h2").id;
    const heads = [...section.querySelector("thead").rows].at(-1).cells;
    const rows = [];
    for (const row of section.querySelector("tbody").rows) {
      if (row.classList.contains("printed")) rows.at(-1).printed.push(row);
      else rows.push({ row, printed: [], place: rows.length, text: row.cells[0].textContent.toLowerCase() });
    }
    const data = board.tables[anchor];
    rows.forEach((one, i) => {
      one.runs = data.rows[i][0];
      one.cells = data.rows[i][1];
      one.repeat = data.rows[i][2];
    });
    return { section, anchor, heads: [...heads], rows, data, sort: "", baseline: data.baselines[0]?.[0], values: new Map(),
             body: section.querySelector("tbody"), ...section.dataset };
  });
  const first = tables[0];
  const defaults = { setting: first?.setting ?? "", backbone: first?.backbone ?? "", suite: first?.suite ?? "", text: first?.text ?? "", baseline: first?.baseline ?? "",
                     show: "all", q: "", sort: "", rows: "", compare: "", cell: "" };
  let state = { ...defaults };

  // --- the address ---

  const encode = (text) => encodeURIComponent(text).replace(/%2F/g, "/").replace(/%2B/g, "+").replace(/%40/g, "@");
  const address = (wanted) =>
    "#" + KEYS.filter((key) => key === "suite" || wanted[key] !== defaults[key]).map((key) => `${key}=${encode(wanted[key])}`).join("&");

  function decode(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  }

  function read() {
    const hash = location.hash.slice(1);
    if (!hash) return { ...defaults };
    if (hash.includes("=")) {
      const found = { ...defaults };
      for (const part of hash.split("&")) {
        const at = part.indexOf("=");
        if (KEYS.includes(part.slice(0, at))) found[part.slice(0, at)] = decode(part.slice(at + 1));
      }
      for (const key of COUNTED) if (found[key] !== "all" && !tables.some((table) => table[key] === found[key])) found[key] = defaults[key];
      if (!["all", "ours", "papers"].includes(found.show)) found.show = defaults.show;
      return found;
    }
    const table = tables.find((one) => one.anchor === decode(hash));
    if (!table) return { ...state, cell: "" };
    return { ...state, setting: table.setting, backbone: table.backbone, suite: table.suite, text: table.text, show: "all", cell: "" };
  }

  function go(wanted) {
    history.pushState(null, "", address(wanted));
    state = wanted;
    show();
  }

  const fits = (table, wanted) =>
    wanted.show !== "papers" && FILTERS.every((key) => wanted[key] === "all" || wanted[key] === table[key]) && hasForm(table, wanted.text);

  // Of tables that differ in the text form alone, the one with the chosen form; the first where none has it.
  function hasForm(table, text) {
    table.forms ??= tables.filter((one) => [...FILTERS, "protocol"].every((key) => one[key] === table[key])).map((one) => one.text);
    return text === "all" || (table.forms.includes(text) ? table.text === text : table.text === table.forms[0]);
  }

  // Where no table has all of what was chosen, the other choices follow the new one.
  function chosen(key, value) {
    const next = { ...state, [key]: value, cell: "" };
    if (COUNTED.includes(key)) next.compare = ""; // the rows of one table
    if (COUNTED.includes(key) && next.show === "papers") next.show = "all";
    if (!FILTERS.includes(key) || value === "all" || tables.some((table) => fits(table, next))) return next;
    const kept = (table) => FILTERS.filter((other) => next[other] === "all" || next[other] === table[other]).length;
    const best = tables.filter((table) => table[key] === value).sort((a, b) => kept(b) - kept(a))[0];
    if (best) for (const other of FILTERS) if (next[other] !== "all") next[other] = best[other];
    return next;
  }

  // --- what is shown ---

  function show() {
    const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (text) => words.every((word) => text.includes(word));
    main.dataset.show = state.show;
    let rows = 0, all = 0;
    for (const table of tables) {
      const shown = fits(table, state), found = words.length ? table.rows.filter((one) => matches(one.text)) : table.rows;
      table.matching = found.length;
      table.section.hidden = !shown || !found.length;
      if (!shown) continue;
      rows += found.length;
      all += table.rows.length;
      arrange(table, matches);
      compare(table);
    }
    say();
    sideBySideOf();
    const printed = showPrinted(matches, words.length > 0);
    document.querySelector(".empty").hidden = rows > 0 || state.show === "papers";
    const output = document.querySelector(".switches output");
    if (output) output.textContent = state.show === "papers" ? count(printed, "printed row") : rows === all ? count(rows, "row") : `${rows} of ${count(all, "row")}`;
    switches();
    for (const table of tables) if (!table.section.hidden) enter(table, table.shown[0], 0);
    panel();
  }

  // --- rows side by side: ticked in a table, kept in the address ---

  function ticked() {
    const [anchor, ...ids] = state.compare.split("/");
    const table = tables.find((one) => one.anchor === anchor);
    return { table, rows: table ? ids.map((id) => table.rows.find((one) => idOf(one.runs[0]) === id)).filter(Boolean) : [] };
  }

  function tick(table, one) {
    const { table: before, rows } = ticked(), kept = before === table ? rows : [];
    const next = kept.includes(one) ? kept.filter((other) => other !== one) : [...kept, one];
    go({ ...state, cell: "", compare: next.length ? [table.anchor, ...next.map((row) => idOf(row.runs[0]))].join("/") : "" });
  }

  function sideBySideOf() {
    const { table, rows } = ticked(), place = document.querySelector(".compare");
    for (const other of tables) for (const one of other.rows) if (one.tick) one.tick.checked = other === table && rows.includes(one);
    place.hidden = rows.length < 2 || table.section.hidden;
    if (place.hidden) return place.replaceChildren();
    const costs = table.heads.filter((head) => head.classList.contains("cost"));
    const told = rows.map((one) => ({
      name: one.row.cells[0].querySelector("a").textContent, beside: one.row.cells[0].querySelector("small")?.textContent ?? "", cells: one.cells, place: one.place,
      repeat: one.repeat, means: one.cells.map((cell, c) => (cell ? printedNumber(table, one, c) : NaN)), printed: one.cells.map((cell, c) => (cell ? printedWhole(table, one, c) : "")), costs: costs.map((head) => one.row.cells[head.cellIndex].textContent),
    }));
    place.replaceChildren(...sideBySide(table.data, told, costs.map((head) => head.dataset.sort)).filter(Boolean));
  }

  for (const table of tables) {
    if (table.rows.length < 2) continue;
    for (const one of table.rows) {
      one.tick = make("input", { type: "checkbox", "aria-label": `compare ${one.row.cells[0].textContent.trim()}`, title: "compare" });
      one.tick.addEventListener("change", () => tick(table, one));
      one.row.cells[0].prepend(one.tick);
    }
  }

  // The sentence above and the figures are those of what is shown.
  const sentence = document.querySelector(".answer"), figures = [...document.querySelectorAll("figure[data-suites]")];
  function say() {
    const table = tables.find((one) => fits(one, state)) ?? first;
    if (table) sentence.textContent = table.answer;
    for (const figure of figures) {
      const suites = figure.dataset.suites.split(" ").filter(Boolean);
      figure.hidden = state.suite !== "all" && suites.length > 0 && !suites.includes(state.suite);
    }
    for (const more of document.querySelectorAll(".figures .more")) {
      const left = more.querySelectorAll("figure:not([hidden])").length;
      more.hidden = !left;
      more.querySelector("summary").textContent = count(left, "more figure");
    }
    const none = document.querySelector(".figures .none");
    if (none) none.hidden = figures.some((figure) => !figure.hidden);
  }

  // The rows that are shown come first, in their order; of a long table the rest waits for a click, so that sorting stays quick.
  function arrange(table, matches) {
    const key = JSON.stringify([state.sort, state.q, state.rows]);
    if (table.arranged === key) return;
    table.arranged = key;
    const found = sorted(table).filter((one) => matches(one.text));
    table.shown = state.rows === "all" ? found : found.slice(0, MOST_ROWS);
    const shown = new Set(table.shown);
    for (const one of table.rows) {
      if (one.row.hidden !== shown.has(one)) continue;
      for (const row of [one.row, ...one.printed]) row.hidden = !shown.has(one);
    }
    table.shown.forEach((one) => link(table, one));
    table.body.prepend(...table.shown.flatMap((one) => [one.row, ...one.printed]));
    table.rest ??= table.section.querySelector(".scroll").appendChild(make("p", { class: "rest" }, make("a", {})));
    table.rest.hidden = found.length <= MOST_ROWS;
    table.rest.firstChild.textContent = state.rows === "all" ? `Show ${MOST_ROWS} rows.` : `Show all ${found.length.toLocaleString("en")} rows.`;
    table.rest.firstChild.href = address({ ...state, rows: state.rows === "all" ? "" : "all", cell: "" });
  }

  function showPrinted(matches, searching) {
    let rows = 0;
    for (const paper of document.querySelectorAll(".paper")) {
      let here = 0;
      for (const row of paper.querySelectorAll("tbody tr")) {
        row.hidden = !matches(row.textContent.toLowerCase());
        here += !row.hidden;
      }
      paper.hidden = here === 0;
      if (searching && state.show === "papers") paper.open = true;
      rows += here;
    }
    for (const all of document.querySelectorAll(".of-paper")) all.hidden = !all.querySelector(".paper:not([hidden])");
    return rows;
  }

  function switches() {
    const shown = tables.filter((table) => fits(table, state)), judging = shown.find(against), current = judging && nameOf(judging);
    for (const list of document.querySelectorAll("[data-key]")) {
      const key = list.dataset.key;
      for (const link of list.querySelectorAll("a")) {
        const value = link.dataset.value, next = chosen(key, value);
        link.href = address(next);
        if (value === (key === "baseline" ? current : state[key])) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
        if (COUNTED.includes(key)) {
          const left = tables.reduce((sum, table) => sum + (fits(table, next) ? table.matching : 0), 0);
          link.querySelector("small").textContent = left;
          link.title = `leaves ${count(left, "row")}`;
        }
        if (key === "show" && value === "ours") link.parentElement.hidden = state.show !== "ours" && !shown.some((table) => table.rows.some((one) => one.printed.length));
        if (key === "baseline") link.parentElement.hidden = !shown.some((table) => judged(table, value));
        if (key === "text") link.parentElement.hidden = !shown.some((table) => table.forms.length > 1 && [...table.forms, "all"].includes(value));
      }
      list.parentElement.hidden = !list.querySelector("li:not([hidden])");
    }
    const search = document.getElementById("search");
    if (search && search !== document.activeElement) search.value = state.q;
  }

  // On a page of many runs only one number of a row came as a link.
  function link(table, one) {
    if (one.linked) return;
    one.linked = true;
    const href = (one.row.querySelector("td > a") ?? one.row.cells[0].querySelector("a")).getAttribute("href");
    table.heads.forEach((head, i) => {
      const number = head.dataset.c === undefined ? null : one.row.cells[i].firstChild;
      if (number && number.nodeName !== "A") one.row.cells[i].prepend(make("a", { href, tabindex: "-1" }, number));
    });
  }

  // --- order ---

  function valuesOf(table, name) {
    if (table.values.has(name)) return table.values.get(name);
    const at = table.heads.findLastIndex((head) => head.dataset.sort === name);
    if (at < 0) return null;
    const c = table.heads[at].dataset.c;
    const value = (one) => {
      const cell = one.row.cells[at];
      if (c !== undefined) return printedNumber(table, one, c);
      if (cell.dataset.v !== undefined) return Number(cell.dataset.v) < 0 ? NaN : Number(cell.dataset.v);
      if (name === "method") return one.text;
      if (name === "grade") return GRADES.indexOf(cell.textContent);
      return cell.textContent === "" ? NaN : Number(cell.textContent);
    };
    const falling = c !== undefined ? !table.data.columns[c].low : ["seeds", "grade"].includes(name);
    const found = { values: table.rows.map(value), falling };
    table.values.set(name, found);
    return found;
  }

  // A number with its interval, as the table prints them.
  function printedWhole(table, one, c) {
    const at = table.heads.findLastIndex((head) => Number(head.dataset.c ?? -1) === c), cell = one.row.cells[at];
    return [cell.firstChild?.textContent, cell.querySelector("small")?.textContent].filter(Boolean).join(" ");
  }

  // The number as it is printed: a text that a script made of the same values might be off by a hundredth.
  function printedNumber(table, one, c) {
    const at = table.heads.findLastIndex((head) => Number(head.dataset.c ?? -1) === Number(c));
    return Number((one.row.cells[at].firstChild?.textContent ?? "x").replace("\u2212", "-"));
  }

  function sorted(table) {
    const back = state.sort.startsWith("-"), name = state.sort.slice(back ? 1 : 0);
    const found = name ? valuesOf(table, name) : null;
    table.body.parentElement.classList.toggle("sorted", found !== null);
    for (const head of table.heads) {
      if (found && head.dataset.sort === name) head.setAttribute("aria-sort", found.falling !== back ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    if (!found) return table.rows;
    const { values, falling } = found, sign = falling !== back ? -1 : 1;
    return [...table.rows].sort((a, b) => {
      const x = values[a.place], y = values[b.place];
      if (x !== x || y !== y) return (x !== x) - (y !== y) || a.place - b.place;
      return (x < y ? -sign : x > y ? sign : 0) || a.place - b.place;
    });
  }

  for (const table of tables) {
    for (const head of table.heads) {
      const button = make("button", { type: "button", title: "sort" }, head.textContent);
      button.addEventListener("click", () => {
        const name = head.dataset.sort;
        const next = state.sort === name ? "-" + name : state.sort === "-" + name ? "" : name;
        go({ ...state, sort: next, cell: "" });
      });
      const why = head.querySelector("a"); // what the word means, where the heading leads to that
      head.replaceChildren(button);
      if (why) {
        why.replaceChildren("?");
        why.setAttribute("aria-label", `what ${head.dataset.sort} means`);
        head.append(" ", why);
      }
    }
  }

  // --- the baseline ---

  const judged = (table, name) => table.data.baselines.find((one) => one[0] === name)?.[1];
  const against = (table) => judged(table, state.baseline) ?? (state.baseline === defaults.baseline ? table.data.baselines[0]?.[1] : undefined);
  const nameOf = (table) => (judged(table, state.baseline) ? state.baseline : table.data.baselines[0]?.[0]);

  function compare(table) {
    if (table.baseline === state.baseline || !table.data.baselines.length) return;
    table.baseline = state.baseline;
    const found = against(table);
    for (const one of table.rows) {
      table.heads.forEach((head, i) => {
        const sign = head.dataset.c === undefined ? null : one.row.cells[i].querySelector("i");
        if (!sign) return;
        const verdict = found?.rows[one.place][head.dataset.c];
        const letter = (verdict && verdict[0]) || "";
        sign.className = letter in WORDS ? letter : "";
        sign.textContent = WORDS[letter] ?? "";
      });
    }
    const legend = table.section.querySelector(".against");
    if (!legend) return;
    legend.hidden = !found;
    if (!found) return;
    legend.querySelector(".baseline").textContent = nameOf(table);
    legend.querySelector(".how").textContent = found.how;
  }

  // --- moving among the numbers ---

  const linksOf = (one) => (one ? [...one.row.querySelectorAll("td > a")].filter((link) => link.offsetParent) : []);

  // One number of each table is reached by Tab; arrow keys lead to the others.
  function enter(table, one, at) {
    const link = linksOf(one)[at];
    if (!link) return null;
    if (table.entry) table.entry.tabIndex = -1;
    else for (const other of table.body.querySelectorAll("td > a")) other.tabIndex = -1;
    table.entry = link;
    link.tabIndex = 0;
    return link;
  }

  function move(event, table) {
    const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const link = event.target.closest("td > a");
    if (!by || !link || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const shown = table.shown, row = shown.findIndex((one) => one.row.contains(link));
    const wanted = shown[row + by[0]], here = linksOf(shown[row]).indexOf(link) + by[1];
    enter(table, wanted, Math.min(here, linksOf(wanted).length - 1))?.focus();
  }

  for (const table of tables) {
    table.body.addEventListener("keydown", (event) => move(event, table));
    table.body.addEventListener("click", (event) => {
      const link = event.target.closest("td > a");
      if (!link || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
      event.preventDefault();
      const one = table.rows.find((other) => other.row.contains(link));
      const c = table.heads[link.parentElement.cellIndex].dataset.c;
      go({ ...state, cell: [table.anchor, idOf(one.runs[0]), table.data.columns[c].task].join("/") });
    });
  }

  // --- the panel ---

  const idOf = (run) => decode(board.runs[run][0].slice("runs/".length));
  let open = null;

  function panel() {
    const [anchor, id, ...task] = state.cell.split("/");
    const table = state.cell ? tables.find((one) => one.anchor === anchor && !one.section.hidden) : null;
    const one = table?.rows.find((row) => row.runs.some((run) => idOf(run) === id) && !row.row.hidden);
    const c = one ? table.data.columns.findIndex((column) => column.task === task.join("/")) : -1;
    if (c < 0 || !one.cells[c]) return close(false);
    const at = table.heads.findIndex((head, i) => Number(head.dataset.c ?? -1) === c && one.row.cells[i].offsetParent);
    const from = one.row.cells[at]?.querySelector("a");
    if (from) pop(from, `${one.row.cells[0].querySelector("a").textContent}, ${table.data.columns[c].task}`, facts(table, one, c));
  }

  function facts(table, one, c) {
    const found = against(table), base = found && found.row !== null ? table.rows[found.row] : null;
    const side = (row) => ({ name: row.row.cells[0].querySelector("a").textContent, beside: row.row.cells[0].querySelector("small")?.textContent ?? "",
                             cell: row.cells[c], mean: printedNumber(table, row, c), runs: row.runs, repeat: row.repeat });
    return told(side(one), base?.cells[c] ? { ...side(base), name: nameOf(table) } : null, base === one, found?.rows[one.place][c], table.data, c);
  }

  function pop(from, label, inside) {
    close(false);
    const shut = make("button", { type: "button", "aria-label": "close" }, "\u00d7");
    shut.addEventListener("click", leave);
    const box = make("div", { class: "panel", role: "dialog", "aria-label": label, tabindex: "-1" }, make("header", {}, inside.shift(), shut), inside);
    (from.closest(".scroll") ?? from).after(box);
    const place = from.getBoundingClientRect(), around = main.getBoundingClientRect();
    box.style.top = `${place.bottom - around.top + 6}px`;
    box.style.left = `${Math.max(16, Math.min(place.left - around.left - 48, around.width - box.offsetWidth - 32))}px`;
    open = { box, from };
    from.setAttribute("aria-expanded", "true");
    box.focus({ preventScroll: true });
    box.scrollIntoView({ block: "nearest" });
  }

  function close(back) {
    if (!open) return;
    open.box.remove();
    open.from.removeAttribute("aria-expanded");
    if (back) open.from.focus({ preventScroll: true });
    open = null;
  }

  function leave() {
    close(true);
    if (state.cell) {
      state = { ...state, cell: "" };
      history.replaceState(null, "", address(state));
    }
  }

  document.addEventListener("keydown", (event) => event.key === "Escape" && open && leave());
  document.addEventListener("pointerdown", (event) => {
    if (open && !open.box.contains(event.target) && !event.target.closest("td > a, .mark")) leave();
  });

  // --- remarks on printed numbers, commands ---

  for (const mark of document.querySelectorAll("a.mark")) {
    mark.addEventListener("click", (event) => {
      event.preventDefault();
      const where = mark.closest("tr").querySelector("th").firstChild.textContent;
      const remarks = mark.dataset.remarks.trim().split(" ").map((id) => make("li", {}, document.getElementById(id).dataset.text));
      pop(mark, where, [make("h3", {}, where), make("ul", {}, remarks)]);
    });
  }

  document.querySelectorAll(".command").forEach(withCopy);

  // --- print: what is folded on a screen is no use on paper ---

  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const one of folded) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of folded) one.open = false;
  });

  // --- go ---

  function arrive() {
    state = read();
    show();
    const target = location.hash.includes("=") ? null : document.getElementById(decode(location.hash.slice(1)));
    if (!target) return;
    const paper = target.closest(".paper");
    if (paper) paper.open = true;
    target.scrollIntoView();
  }

  for (const hidden of document.querySelectorAll("[data-scripted]")) hidden.hidden = false;
  document.getElementById("search")?.addEventListener("input", (event) => {
    state = { ...state, q: event.target.value, cell: "" };
    history.replaceState(null, "", address(state));
    show();
  });
  document.documentElement.classList.add("scripted");
  addEventListener("hashchange", arrive);
  arrive();
})();
