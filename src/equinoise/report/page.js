// Makes tables sortable: without scripts they are plain tables in their own order.
"use strict";
for (const table of document.querySelectorAll("table")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => compare(a.cells[column], b.cells[column], down ? -1 : 1));
      table.tBodies[0].append(...rows);
    });
  });
}
// Numbers by their value, words by the alphabet, and what is missing last in both directions.
function compare(a, b, sign) {
  const [x, y] = [a.dataset.value, b.dataset.value];
  const missing = (x === undefined) - (y === undefined);
  const words = x === undefined ? a.textContent.localeCompare(b.textContent) : 0;
  return missing || sign * (words || (x === y ? 0 : x - y));
}
