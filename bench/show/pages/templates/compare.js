"use strict";
// Two or more rows of a table side by side: each task with its difference and interval, seeds as dots, cost, recipe, commands.
// Drawn from the page's own data; differences are those from the row that was ticked first, tested where that row is the table's baseline.
window.compareRows = (board, { make, strip, difference, withCopy }) => {
  const name = (one) => [one.name, one.beside].filter(Boolean).join(" ");

  // ``rows``: name, beside, cells, means, printed numbers, costs, place, repeat of each, the first being what the others are compared with.
  return (data, rows, costs) => {
    const [base, ...others] = rows, judged = data.baseline?.row === base.place ? data.baseline : null;
    const heads = ["task", ...rows.map(name), ...others.map((one) => `${name(one)} less ${name(base)}`), "seeds and intervals"];
    const body = data.columns.map((column, c) => {
      const there = rows.filter((one) => one.cells[c]);
      const numbers = rows.map((one) => make("td", {}, one.printed[c]));
      const less = others.map((one) => make("td", { class: "words" },
        one.cells[c] && base.cells[c] ? difference(judged?.rows[one.place][c], one.means[c] - base.means[c], column) : ""));
      const dots = there.length ? strip(there.map((one) => ({ name: name(one), cell: one.cells[c] })), column) : "";
      return make("tr", {}, make("th", { scope: "row" }, column.task), numbers, less, make("td", { class: "dots" }, dots));
    });
    const line = (what, values) => make("tr", {}, make("th", { scope: "row" }, what), values.map((value) => make("td", {}, value)));
    const facts = costs.map((cost, i) => line(cost, rows.map((one) => one.costs[i])));
    const recipe = Object.entries(data.recipe).map(([key, values]) => [key, rows.map((one) => board.texts[values[one.place]])])
      .filter(([, values]) => new Set(values).size > 1).map(([key, values]) => line(key, values));
    const table = (head, lines, label) => make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
      make("table", {}, make("thead", {}, make("tr", {}, head.map((one) => make("th", { scope: "col" }, one)))), make("tbody", {}, lines)));
    return [
      make("h2", {}, rows.map(name).join(" and ")),
      make("p", { class: "legend" }, judged ? `Differences from ${name(base)} are tested on the column that ranks.` : `Differences from ${name(base)} were not tested: it is not the baseline of this table.`),
      table(heads, body, "scores side by side"),
      make("h3", {}, "Cost and recipe, where they differ"),
      table(["", ...rows.map(name)], [...facts, ...recipe], "cost and recipe side by side"),
      make("h3", {}, "Repeat"),
      ...rows.flatMap((one) => {
        const [what, rest, needs] = one.repeat.map((at) => board.texts[at]);
        return [withCopy(make("div", { class: "command" }, make("pre", { tabindex: "0" }, `${what} ${rest}`))), needs ? make("p", {}, needs) : ""];
      }),
    ];
  };
};
