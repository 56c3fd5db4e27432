"use strict";
// The main page: choices, sorting, search and the panel of a number. All state is in the address after "#", so that every view can
// be linked and the back button works. Without this script every table is there, and every row links to its run, on a page of fewer runs every number.
(() => {
  const board = JSON.parse(document.getElementById("board-data").textContent);
  const main = document.querySelector("main");
  const FILTERS = ["setting", "backbone", "suite"];
  const COUNTED = [...FILTERS, "text"];
  const OWN = ["tasks", "metric", "family", "trains", "time"]; // a reader's own choice: nothing of it was tested
  const KEYS = [...COUNTED, ...OWN, "show", "q", "sort", "rows", "compare", "cell"];
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
    const tasks = [...heads].filter((head) => head.dataset.c !== undefined && !head.matches(".early, .average, .apart")).map((head) => ({ name: head.dataset.sort, head, c: Number(head.dataset.c) }));
    const train = [...heads].findIndex((head) => head.dataset.sort === "train");
    for (const one of rows) one.seconds = train < 0 || one.row.cells[train].dataset.v < 0 ? NaN : Number(one.row.cells[train].dataset.v);
    return { section, anchor, tasks, heads: [...heads], rows, data, sort: "", values: new Map(),
             body: section.querySelector("tbody"), ...section.dataset };
  });
  const first = tables[0];
  const defaults = { setting: first?.setting ?? "", backbone: first?.backbone ?? "", suite: first?.suite ?? "", text: first?.text ?? "",
                     tasks: "", metric: "", family: "", trains: "", time: "", show: "all", q: "", sort: "", rows: "", compare: "", cell: "" };
  let state = { ...defaults };

  // --- the address ---

  const encode = (text) => encodeURIComponent(text).replace(/%2F/g, "/").replace(/%2B/g, "+").replace(/%40/g, "@").replace(/%2C/g, ",");
  const address = (wanted) =>
    "#" + KEYS.filter((key) => key === "suite" || wanted[key] !== defaults[key]).map((key) => `${key}=${encode(wanted[key])}`).join("&");

  const offered = (key) => [...document.querySelectorAll(`[data-key=${key}] a`)].map((link) => link.dataset.value);

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
      for (const key of OWN) if (key !== "tasks" && !offered(key).includes(found[key])) found[key] = "";
      found.tasks = found.tasks.split(",").filter((name) => tables.some((table) => table.tasks.some((one) => one.name === name))).join(",");
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
    const kept = (one) => matches(one.text) && ["family", "trains"].every((key) => !state[key] || one.row.dataset[key] === state[key]) && (!state.time || one.seconds <= Number(state.time));
    main.dataset.show = state.show;
    let rows = 0, all = 0;
    for (const table of tables) {
      const shown = fits(table, state), found = words.length || state.family || state.trains || state.time ? table.rows.filter(kept) : table.rows;
      table.matching = found.length;
      table.section.hidden = !shown || !found.length;
      if (!shown) continue;
      rows += found.length;
      all += table.rows.length;
      own(table);
      arrange(table, kept);
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

  // --- own choice: some of the tasks and their mean, another metric. Nothing of it was tested, so that it has no rank and no interval ---

  const mean = (values) => (values.length && values.every((value) => value === value) ? values.reduce((sum, value) => sum + value, 0) / values.length : NaN);
  const numberIn = (text) => (text ? Number(text.replace("\u2212", "-")) : NaN);
  const chosenTasks = (table) => table.tasks.filter((one) => state.tasks.split(",").includes(one.name));

  function own(table) {
    const wanted = chosenTasks(table), some = wanted.length > 0 && wanted.length < table.tasks.length;
    const metric = table.data.other[state.metric] ? state.metric : "", key = JSON.stringify([some && wanted.map((one) => one.name), metric]);
    if (table.own === key || (table.own === undefined && !some && !metric)) return;
    table.own = key;
    table.values.clear();
    const grid = table.body.parentElement, average = table.heads.find((head) => head.classList.contains("average"));
    const lines = [...table.rows.map((one) => [one.row, table.data.other[metric]?.rows[one.place]]),
      ...[...grid.querySelectorAll(".finished tr")].map((row, i) => [row, table.data.other[metric]?.finished[i]])];
    grid.classList.toggle("other-metric", metric !== "");
    for (const [row, others] of lines) for (const head of table.heads.filter((one) => one.dataset.c !== undefined)) write(row.cells[head.cellIndex], head, metric, others, table);
    const means = average && some && wanted.length > 1;
    if (means && !table.mean) addMean(table);
    const hide = new Map([...table.tasks.map((one) => [one.head, some && !wanted.includes(one)]),
      ...table.heads.filter((head) => head.matches(".average, .early")).map((head) => [head, some]),
]);
    if (table.mean) hide.set(table.mean, !means);
    const beside = table.heads.filter((head) => head.dataset.c !== undefined && head.matches(".apart"));
    for (const head of beside) hide.set(head, metric !== "");
    for (const row of grid.querySelectorAll("thead tr:last-child, tbody tr")) for (const [head, hidden] of hide) row.cells[head.cellIndex].hidden = hidden;
    const groups = grid.querySelector(".groups"), group = groups.querySelector("th");
    group.colSpan = some ? wanted.length : table.tasks.length + (average ? 1 : 0);
    group.classList.toggle("few", group.colSpan < 3);
    [...groups.querySelectorAll("th")].slice(1, 1 + beside.length).forEach((one) => (one.hidden = metric !== ""));
    group.firstChild.dataset.was ??= group.textContent;
    group.firstChild.textContent = metric ? table.data.other[metric].words : group.firstChild.dataset.was;
    for (const [name, gone] of [["early", some], ["", some || metric !== ""]]) for (const cell of groups.querySelectorAll(`td[class="${name}"], td:not([class])`)) if (cell.className === name) cell.hidden = gone;
    if (table.mean) {
      groups.querySelector(".own").hidden = !means;
      for (const [row, others] of means ? lines : []) {
        const cell = row.cells[table.mean.cellIndex], value = mean(wanted.map((one) => exact(table, row, others, one)));
        cell.textContent = value === value ? value.toFixed(2).replace("-", "\u2212") : "";
        cell.dataset.own = value;
      }
    }
    table.note ??= table.section.querySelector("h2").parentNode.insertBefore(make("p", { class: "own" }), table.section.querySelector(".scroll"));
    table.note.hidden = !some && !metric;
    for (const part of table.section.querySelectorAll(".of-numbers")) part.hidden = some || metric !== "";
    const names = wanted.map((one) => one.name), parts = [];
    if (some) parts.push(means ? `the mean of ${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names.join(" and "));
    if (metric) parts.push(table.data.other[metric].words.split(";")[0] + " in the place of the metric of the protocol");
    table.note.replaceChildren(`Own choice: ${parts.join("; ")}. Computed from the recorded scores; not tested. `, make("a", { href: address({ ...state, tasks: "", metric: "", cell: "" }) }, "As published"));
  }

  // The value behind a printed number: the mean over seeds, or what another metric gives.
  function exact(table, row, others, task) {
    if (others) return others[task.c] || NaN;
    const one = table.rows.find((other) => other.row === row);
    return one ? (one.cells[task.c] ? mean(one.cells[task.c][0]) : NaN) : numberIn(row.cells[task.head.cellIndex].firstChild?.textContent);
  }

  // A number in another metric, or as it came. The average is that of the tasks, where all of them have the metric.
  function write(cell, head, metric, others, table) {
    let node = cell.firstChild;
    while (node?.firstChild) node = node.firstChild;
    if (!node || (!metric && cell.dataset.was === undefined)) return;
    cell.dataset.was ??= node.data;
    const c = Number(head.dataset.c), value = head.matches(".average, .early") ? mean(table.tasks.map((one) => others?.[one.c] || NaN)) : others?.[c] || NaN;
    node.data = !metric ? cell.dataset.was : value === value ? value.toFixed(2).replace("-", "\u2212") : "";
    if (!metric) delete cell.dataset.was;
  }

  function addMean(table) {
    const grid = table.body.parentElement;
    for (const row of grid.rows) row.cells[0].after(make(row.parentElement.tagName === "THEAD" ? (row.matches(".groups") ? "td" : "th") : "td", { class: "own" }));
    const head = [...grid.tHead.rows].at(-1).cells[1];
    head.scope = "col";
    head.dataset.sort = "own choice";
    head.textContent = "own choice";
    sortable(head);
    table.mean = head;
    table.heads = [...head.parentElement.cells];
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

  // The overview of all suites is that of the setting and the backbone that are shown.
  const overviews = [...document.querySelectorAll(".overview")];

  // The sentence above and the figures are those of what is shown.
  const sentence = document.querySelector(".answer"), figures = [...document.querySelectorAll("figure[data-suites]")];
  function say() {
    const table = tables.find((one) => fits(one, state)) ?? first;
    if (table) sentence.textContent = table.answer;
    for (const one of overviews) one.hidden = ["setting", "backbone"].some((key) => state[key] !== "all" && state[key] !== one.dataset[key]);
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
  function arrange(table, kept) {
    const key = JSON.stringify([state.sort, state.q, state.rows, state.family, state.trains, state.time, table.own]);
    if (table.arranged === key) return;
    table.arranged = key;
    const found = sorted(table).filter(kept);
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
    const shown = tables.filter((table) => fits(table, state));
    offerTasks(shown);
    const choice = document.querySelector(".choice");
    if (choice && OWN.some((key) => state[key])) choice.open = true;
    for (const list of document.querySelectorAll("[data-key]")) {
      const key = list.dataset.key;
      if (key === "tasks") continue;
      for (const link of list.querySelectorAll("a")) {
        const value = link.dataset.value, next = chosen(key, value);
        link.href = address(next);
        if (value === state[key]) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
        if (COUNTED.includes(key)) {
          const left = tables.reduce((sum, table) => sum + (fits(table, next) ? table.matching : 0), 0);
          link.querySelector("small").textContent = left;
          link.title = `leaves ${count(left, "row")}`;
        }
        if (key === "show" && value === "ours") link.parentElement.hidden = state.show !== "ours" && !shown.some((table) => table.rows.some((one) => one.printed.length));
        if (key === "metric") link.parentElement.hidden = !shown.some((table) => (value ? table.data.other[value] : Object.keys(table.data.other).length));
        if (key === "text") link.parentElement.hidden = !shown.some((table) => table.forms.length > 1 && [...table.forms, "all"].includes(value));
      }
      list.parentElement.hidden = !list.querySelector("li:not([hidden])");
    }
    const search = document.getElementById("search");
    if (search && search !== document.activeElement) search.value = state.q;
  }

  // The tasks of the tables that are shown; each is taken into the choice, or out of it.
  function offerTasks(shown) {
    const list = document.querySelector("[data-key=tasks]");
    if (!list) return;
    const names = [...new Set(shown.filter((table) => table.tasks.length > 1).flatMap((table) => table.tasks.map((one) => one.name)))];
    const now = state.tasks.split(",").filter(Boolean), here = now.filter((name) => names.includes(name));
    if (names.join("\n") !== list.dataset.names) {
      list.dataset.names = names.join("\n");
      list.replaceChildren(...["", ...names].map((name) => make("li", {}, make("a", { "data-value": name }, name || "all"))));
    }
    for (const link of list.querySelectorAll("a")) {
      const name = link.dataset.value, left = here.includes(name) ? now.filter((one) => one !== name) : [...now, name];
      link.href = address({ ...state, tasks: name && !names.every((one) => left.includes(one)) ? left.join(",") : now.filter((one) => !names.includes(one)).join(","), cell: "" });
      if (name ? here.includes(name) : !here.length) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    list.parentElement.hidden = names.length < 2;
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
      if (name === "own choice") return Number(cell.dataset.own);
      if (c !== undefined) return numberIn(cell.firstChild?.textContent);
      if (cell.dataset.v !== undefined) return Number(cell.dataset.v) < 0 ? NaN : Number(cell.dataset.v);
      if (name === "method") return one.text;
      if (name === "grade") return GRADES.indexOf(cell.textContent);
      return cell.textContent === "" ? NaN : Number(cell.textContent);
    };
    const falling = c !== undefined ? !table.data.columns[c].low : ["seeds", "grade", "own choice", "encode"].includes(name);
    const found = { values: table.rows.map(value), falling };
    table.values.set(name, found);
    return found;
  }

  // A number with its interval, as the table prints them.
  function printedWhole(table, one, c) {
    const at = table.heads.findLastIndex((head) => Number(head.dataset.c ?? -1) === c), cell = one.row.cells[at];
    return [cell.dataset.was ?? cell.firstChild?.textContent, cell.querySelector("small")?.textContent].filter(Boolean).join(" ");
  }

  // The number as it is printed: a text that a script made of the same values might be off by a hundredth.
  function printedNumber(table, one, c) {
    const at = table.heads.findLastIndex((head) => Number(head.dataset.c ?? -1) === Number(c));
    return numberIn(one.row.cells[at].dataset.was ?? one.row.cells[at].firstChild?.textContent);
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

  function sortable(head) {
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

  for (const table of tables) table.heads.forEach(sortable);

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
    const found = table.data.baseline, base = found ? table.rows[found.row] : null;
    const side = (row) => ({ name: row.row.cells[0].querySelector("a").textContent, beside: row.row.cells[0].querySelector("small")?.textContent ?? "",
                             cell: row.cells[c], mean: printedNumber(table, row, c), runs: row.runs, repeat: row.repeat });
    return told(side(one), base?.cells[c] ? { ...side(base), name: found.name } : null, base === one, found?.rows[one.place][c], table.data, c);
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
