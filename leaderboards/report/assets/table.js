"use strict";
// Sorts and searches the tables of a page, which are whole without this, and saves the file that it holds.
(() => {
  const all = (query, place = document) => [...place.querySelectorAll(query)];
  document.documentElement.classList.remove("plain");

  // ---- sorting: by the button of a column, by its cells' data-v; what has none comes last ------------------
  for (const head of all("th:has(.sort)"))
    head.addEventListener("click", () => {
      const [row, body] = [head.parentElement, head.closest("table").tBodies[0]];
      const [at, { kind }] = [head.cellIndex, head.firstElementChild.dataset];
      const [now, words] = [head.getAttribute("aria-sort"), kind === "words"];
      const up = now === "none" ? kind !== "numbers" : now === "descending";
      for (const other of row.cells) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const order = (first, second) => {
        if (first === "" || second === "") return (first === "") - (second === "");
        return (words ? first.localeCompare(second, "en", { numeric: true }) : first - second) * (up ? 1 : -1);
      };
      body.append(...[...body.rows].sort((a, b) => order(a.cells[at].dataset.v, b.cells[at].dataset.v)));
    });

  // ---- searching: every word must be in a row or its data-find; the address keeps them: #find=dino+b16
  const plain = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}\s]/gu, "");
  const fields = all("[data-table]");
  const keep = () => {
    const given = fields.filter((field) => field.value).map((field) => [field.id, field.value]);
    history.replaceState(null, "", `#${new URLSearchParams(given)}`);
  };
  for (const find of fields) {
    const rows = [...document.getElementById(find.dataset.table).tBodies[0].rows];
    const texts = rows.map((row) => plain([row.dataset.find, ...[...row.cells].map((cell) => cell.textContent)].join(" ")));
    const search = () => {
      const words = plain(find.value).split(/\s+/).map((word) => word.replace(/(?<=...)s$/, "")); // no plurals
      let count = 0;
      for (const [at, row] of rows.entries()) {
        row.hidden = !words.every((word) => texts[at].includes(word));
        count += !row.hidden;
      }
      document.querySelector(`output[for="${find.id}"]`).textContent = `${count} of ${rows.length} rows`;
    };
    find.value = new URLSearchParams(location.hash.slice(1)).get(find.id) ?? "";
    find.addEventListener("input", () => {
      search();
      keep();
    });
    search();
  }

  // ---- saving --------------------------------------------------------------------------------------------------
  for (const button of all("[data-save]"))
    button.addEventListener("click", async () => {
      const bytes = Uint8Array.from(atob(document.getElementById("data").textContent), (letter) => letter.charCodeAt(0));
      const file = new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
      const href = URL.createObjectURL(new Blob([await file.arrayBuffer()], { type: "text/csv" }));
      Object.assign(document.createElement("a"), { href, download: button.dataset.save }).click();
    });
})();
