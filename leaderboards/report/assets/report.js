"use strict";
// Filters, sorting, choices, highlighting, tooltips and files. Numbers come from the page's data and from the
// transforms of its charts; none is computed here.
(async () => {
  const one = (query, place = document) => place.querySelector(query);
  const all = (query, place = document) => [...place.querySelectorAll(query)];
  const made = (tag, values, ...inner) => {
    const element = Object.assign(document.createElement(tag), values);
    element.append(...inner);
    return element;
  };
  const root = document.documentElement;
  const unpacked = (text) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
  };
  const data = await unpacked(one("#data").textContent).json();
  (0, eval)(await unpacked(one("#library").textContent).text()); // of charts, packed: it is most of the page
  root.classList.remove("plain"); // a browser that cannot unpack shows what is complete without the script
  const mapped = (values, change) =>
    Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value, name)]));
  const rowsOf = (columns) => Object.values(columns)[0].map((_, at) => mapped(columns, (column) => column[at]));
  const frames = mapped(data.frames, rowsOf);
  const labels = Object.keys(data.families);

  // ---- state, kept in the address behind the section: #best?task=knn+top-1&mark=mini-fs -----------------
  const [anchor, ...query] = location.hash.slice(1).split("?");
  const kept = new URLSearchParams(query.join("?"));
  const remember = (changes) => {
    for (const [name, value] of Object.entries(changes)) value ? kept.set(name, value) : kept.delete(name);
    const [page, hash = ""] = location.href.split("#");
    const chosen = hash.split("?")[0] + (kept.size ? `?${kept}` : "");
    history.replaceState(null, "", page + (chosen && `#${chosen}`)); // a mere # would part charts from gradients
  };
  let aimed = anchor; // the section that stays at the top while charts are drawn, until the reader moves
  const aim = () => document.getElementById(aimed)?.scrollIntoView({ behavior: "instant" });
  for (const event of ["wheel", "touchmove", "pointerdown", "keydown"]) addEventListener(event, () => (aimed = ""));
  window.addEventListener("hashchange", () => {
    [aimed] = location.hash.slice(1).split("?");
    remember({});
  });
  const choice = {}; // by name of its controls
  let shown = new Set(labels); // what the filters let through
  let picked = new Set(); // in the charts of lines
  let mark = labels.includes(kept.get("mark")) ? kept.get("mark") : data.highlight; // "" for none

  // ---- which backbones: in the order of their best scores in the task --------------------------------------
  const scored = ({ column, vectors }) => column === choice.task && vectors === choice.vectors;
  const hasVectors = (name) => // of the kind that is chosen, if any is
    !choice.vectors || frames.scores.some((row) => row.backbone === name && scored(row));
  const isShown = (name) => shown.has(name) && hasVectors(name);
  const ranked = (order) => (data.choices.task[choice.task]?.[order] || labels).filter(isShown);
  const isFirst = (name, at, every) => data.families[name] !== data.families[every[at - 1]];
  const picks = {
    top: () => [...ranked("order").slice(0, data.top), mark],
    family: () => ranked("grouped").filter(isFirst),
    none: () => [],
  };
  const many = () => (choice.members ? ranked("grouped") : picks.family());
  const drawnOf = {
    shown: () => ranked("order"),
    listed: () => (shown.size > data.many ? many() : ranked("order")),
    picked: () => ranked("order").filter((name) => picked.has(name)),
  };

  // ---- charts ---------------------------------------------------------------------------------------------------
  const filled = (spec, words) => {
    if (Array.isArray(spec)) return spec.map((part) => filled(part, words));
    if (spec && typeof spec === "object") return mapped(spec, (part) => filled(part, words));
    if (typeof spec !== "string") return spec;
    const whole = /^\{(\w+)\}$/.exec(spec);
    const inner = (_, literal, name) => (literal ? JSON.stringify(words[name]) : String(words[name]));
    return whole ? words[whole[1]] : spec.replace(/\{(=?)(\w+)\}/g, inner);
  };
  const rowsFor = (view, names) => {
    const fit = (value, named) => (Array.isArray(named) ? named.includes(value) : value === choice[named]);
    const chosen = (row) => Object.entries(view.where).every(([column, named]) => fit(row[column], named));
    const rows = frames[view.frame].filter(chosen);
    return names ? rows.filter((row) => names.includes(row.backbone)) : rows;
  };
  const wordsOf = (view, wide) => {
    const names = drawnOf[view.backbones]?.();
    const [rows, [panel, least, letter]] = [rowsFor(view, names), view.panel];
    const order = names || labels.filter((name) => picked.has(name) && shown.has(name));
    const room = wide - 75; // beside the axis
    const panels = new Set(rows.map((row) => row[panel])).size;
    const longest = letter * Math.max(...labels.map((name) => name.length));
    const beside = Math.floor(Math.min(longest, panels === 1 ? room / 3 : room > 440 ? 90 : 0));
    const columns = Math.max(1, Math.min(4, panels, Math.floor(room / (least + beside))));
    const width = Math.floor(room / columns) - 24 - beside;
    const step = view.steps[order.length > data.few ? 1 : 0];
    const listed = order.length < shown.size ? `, the best of each of ${order.length} families` : "";
    return {
      ...Object.assign({}, ...Object.keys(choice).map((name) => data.choices[name]?.[choice[name]])),
      ...data.choices.measure[choice[view.where.measure]], // a column's own metric is named as the column
      ...choice,
      ...data.words,
      ...{ rows, order, picked: drawnOf.picked(), mark: order.includes(mark) ? mark : "" },
      ...{ height: step * Math.max(2, (names || data.words.tasks).length) },
      ...{ columns, beside, width, letters: Math.max(8, Math.floor(width / 6.6)) },
      ...{ narrow: room < 380, listed: choice.task + listed },
      ...{ legend: null, ink: view.renderer === "canvas" ? getComputedStyle(document.body).color : "currentColor" },
      ground: "var(--card, white)",
    };
  };
  const drawn = new Map();
  let drawing = Promise.resolve(); // one chart after another
  const draw = async (name) => {
    const [view, figure] = [data.views[name], one(`#view-${name}`)];
    const [place, words] = [one(".chart", figure), wordsOf(view, one(".chart", figure).clientWidth)];
    const what = filled(view.what, words);
    one(".what", figure).textContent = `  ${what}`;
    const description = `${one("figcaption b", figure).textContent}: ${what}`; // its name for screen readers
    drawn.get(name)?.finalize();
    drawn.delete(name);
    place.textContent = "";
    if (words.rows.length) {
      const quiet = { mode: "vega-lite", actions: false, defaultStyle: false, logLevel: 1, tooltip: tell };
      const given = { ...filled(view.spec, words), description };
      const result = await vegaEmbed(place, given, { ...quiet, renderer: view.renderer });
      drawn.set(name, Object.assign(result, { what, names: words.order }));
      for (const empty of all("g[role=graphics-symbol]:empty", place)) empty.setAttribute("aria-hidden", "true");
    }
    if (!numbers(name).length) place.replaceChildren(made("p", { className: "empty" }, "No numbers for this choice."));
    place.style.minHeight = `${one("svg, canvas", place)?.clientHeight || 0}px`; // while it is drawn again
    if (one(".numbers", figure).open) fillTable(name);
    aim();
  };

  // Charts are drawn when they come into view, and again when what they show has changed.
  const views = all(".view").map((figure) => figure.dataset.view);
  const stale = new Set();
  const near = new Set();
  const drawStale = (names) => {
    for (const name of names) if (stale.delete(name)) drawing = drawing.then(() => draw(name));
  };
  const redraw = (names) => {
    for (const name of names) stale.add(name);
    requestAnimationFrame(() => drawStale(near));
  };
  const watcher = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) near[isIntersecting ? "add" : "delete"](target.dataset.view);
    requestAnimationFrame(() => drawStale(near));
  }, { rootMargin: "500px" });
  window.addEventListener("beforeprint", () => drawStale(views));

  // ---- tooltips, and all backbones at one place of the horizontal axis, by pointer or arrow keys ------------
  const tip = one("#tip");
  const put = (left, up, ...inner) => {
    tip.replaceChildren(...inner);
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(left + 14, window.innerWidth - width - 8))}px`;
    tip.style.top = `${Math.max(4, up + 18 + height > window.innerHeight ? up - height - 12 : up + 18)}px`;
  };
  const pairs = (entries, before = () => "") => {
    const there = entries.filter(([, text]) => !/^(|null|undefined|NaN%?)$/.test(String(text ?? "")));
    const pair = ([name, text]) => [made("dt", {}, before(name), " ", name), made("dd", {}, String(text))];
    return made("dl", {}, ...there.flatMap(pair));
  };
  const tell = (_, event, item, value) => {
    tip.hidden = !value || typeof value !== "object";
    if (!tip.hidden) put(event.clientX, event.clientY, pairs(Object.entries(value)));
  };
  const swatch = (name) => one(`.legend [data-backbone="${CSS.escape(name)}"] .swatch`).cloneNode(true);
  const follow = (name) => {
    const place = one(`#view-${name} .chart`);
    const view = () => drawn.get(name)?.view;
    const rows = () => computed(name, ["x", "score"]);
    const origin = () => one("svg", place).getBoundingClientRect().left + view().origin()[0];
    const nearer = (x) => (best, row) => (Math.abs(row.x - x) < Math.abs(best.x - x) ? row : best);
    const leave = () => {
      tip.hidden = true;
      view()?.signal("at", null).runAsync();
    };
    const read = (x, left, up) => {
      view().signal("at", x).runAsync();
      const lines = Map.groupBy(rows(), (row) => row.backbone).values();
      const at = [...lines].map((line) => line.reduce(nearer(x))).sort((a, b) => b.value - a.value);
      const layers = [...new Set(at.map((row) => row.layer))];
      const layer = (row) => (layers.length > 1 ? `, layer ${row.layer}` : "") + (row.place === "best" ? " ○" : "");
      const head = made("b", {}, layers.length > 1 ? "layers" : `layer ${layers}`);
      put(left, up, head, pairs(at.map((row) => [row.backbone, row.score + layer(row)]), swatch));
    };
    place.addEventListener("pointermove", ({ clientX, clientY }) => {
      if (view()) read(rows().reduce(nearer(view().scale("x").invert(clientX - origin()))).x, clientX, clientY);
    });
    for (const event of ["pointerleave", "blur"]) place.addEventListener(event, leave);
    place.addEventListener("keydown", (event) => {
      if (event.key === "Escape") leave();
      if (!["ArrowLeft", "ArrowRight"].includes(event.key) || !view()) return;
      event.preventDefault();
      const steps = [...new Set(rows().map((row) => row.x))].sort((a, b) => a - b);
      if (event.key === "ArrowLeft") steps.reverse();
      const x = steps[steps.indexOf(view().signal("at")) + 1] ?? steps.at(-1);
      read(x, origin() + view().scale("x")(x), place.getBoundingClientRect().top + 40);
    });
  };

  // ---- highlighting and picking backbones -----------------------------------------------------------
  const light = (name) => {
    for (const { names, view } of drawn.values()) view.signal("mark", names.includes(name) ? name : "").runAsync();
  };
  const highlight = (name) => {
    mark = name;
    remember({ mark });
    light(name);
    for (const button of all("[data-mark]")) button.setAttribute("aria-pressed", String(button.dataset.mark === name));
    for (const row of all("#best-table tbody tr")) row.classList.toggle("marked", row.dataset.backbone === name);
  };
  const repick = () => {
    const [there, count] = [(name) => picked.has(name) && shown.has(name), one("#pick")];
    if (count) count.textContent = `backbones: ${labels.filter(there).length} of ${shown.size}`;
    for (const box of all("#menu input")) {
      box.checked = picked.has(box.value);
      box.closest("label").hidden = !shown.has(box.value);
    }
    const drawnHere = (name) => there(name) && hasVectors(name);
    for (const item of all(".legend li")) item.hidden = !drawnHere(item.dataset.backbone);
    redraw(views.filter((name) => data.views[name].choices.includes("picked")));
  };
  const pick = (names) => (picked = new Set(names.filter((name) => labels.includes(name))));
  const repicked = (names) => {
    pick(names);
    remember({ picked: [...picked].join("|") || "none" });
    repick();
  };
  document.addEventListener("pointerover", ({ target }) =>
    light(target.closest(".legend [data-mark]")?.dataset.mark ?? mark));

  // ---- numbers and files ----------------------------------------------------------------------------------------
  const computed = (name, columns) => { // measured rows of a chart, or of its transforms, that have some columns
    const view = drawn.get(name)?.view;
    const has = (row) => row?.place !== "published" && columns.every((column) => row?.[column] !== undefined);
    const names = Object.keys(view?.getState({ data: () => true, signals: () => false }).data || {});
    return (names.map((each) => view.data(each)).find((rows) => has(rows?.[0])) || []).filter(has);
  };
  const numbers = (name) => {
    const { spec, csv: columns, backbones } = data.views[name];
    return spec ? computed(name, columns) : rowsFor(data.views[name], drawnOf[backbones]());
  };
  const cellsOf = (name) => numbers(name).map((row) => data.views[name].csv.map((column) => row[column] ?? ""));
  const fillTable = (name) => {
    const cell = (value) => made("td", { className: typeof value === "string" ? "left" : "" }, String(value));
    const heads = data.views[name].csv.map((column) => made("th", { scope: "col" }, column));
    const rows = cellsOf(name).map((row) => made("tr", {}, ...row.map(cell)));
    const table = made("table", {}, made("thead", {}, made("tr", {}, ...heads)), made("tbody", {}, ...rows));
    one(`#view-${name} .numbers .scroll`).replaceChildren(table);
  };
  const csvCell = (value) => {
    const isFormula = typeof value === "string" && /^'*[=+\-@\t\r\n]/.test(value);
    const text = (isFormula ? "'" : "") + String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const csv = (name) =>
    [data.views[name].csv, ...cellsOf(name)].map((line) => `${line.map(csvCell).join(",")}\n`).join("");
  const save = (part, type, name, ending) =>
    made("a", { href: URL.createObjectURL(new Blob([part], { type })), download: name + ending }).click();
  const named = (name) => {
    const words = [data.suite, name, drawn.get(name)?.what].filter(Boolean).join(".");
    return words.replace(/[^\w.-]+/g, "-").slice(0, 100);
  };
  for (const details of all(".numbers"))
    details.addEventListener("toggle", () => details.open && fillTable(details.closest(".view").dataset.view));

  // ---- the table of best layers -----------------------------------------------------------------------------
  const table = one("#best-table");
  const heads = all("#best-table thead th");
  const sort = (at, up) => {
    const words = one("button", heads[at]).dataset.kind === "words";
    for (const head of heads) head.setAttribute("aria-sort", "none");
    heads[at].setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      const [first, second] = [a, b].map((row) => row.cells[at].dataset.v);
      if (first === "" || second === "") return (first === "") - (second === "");
      return (words ? first.localeCompare(second) : first - second) * (up ? 1 : -1);
    });
    table.tBodies[0].append(...rows);
  };
  for (const [at, head] of heads.entries())
    one("button", head).addEventListener("click", ({ target }) => {
      const now = head.getAttribute("aria-sort");
      const up = now === "none" ? target.dataset.kind !== "numbers" : now === "descending";
      sort(at, up);
      remember({ sort: `${up ? "" : "-"}${target.textContent}` });
    });
  const taskPlace = () => heads.findIndex((head) => head.textContent === choice.task);
  const narrow = () => { // on a phone the table shows one task, the one that is chosen
    const off = (cell, at) => cell.classList.toggle("off", at > 0 && at !== taskPlace());
    for (const line of table?.rows || []) [...line.cells].forEach(off);
  };

  // ---- choices and filters: each has one value in all of its controls -----------------------------------------
  const controls = all("[data-choice]");
  const filters = controls.filter((control) => control.dataset.fits);
  const fits = {
    part: (text, value) => text.toLowerCase().includes(value.trim().toLowerCase()),
    whole: (text, value) => text === value,
    most: (text, value) => text !== "" && Number(text) <= Number(value),
  };
  const passes = (row) =>
    filters.every(({ value, dataset }) => !value || fits[dataset.fits](row.dataset[dataset.row], value));
  const filter = () => {
    const rows = [...(table?.tBodies[0].rows || [])];
    for (const row of rows) row.hidden = !passes(row);
    if (table) shown = new Set(rows.filter((row) => !row.hidden).map((row) => row.dataset.backbone));
    for (const count of all("#count")) count.textContent = `${shown.size} of ${labels.length} backbones`;
    root.dataset.shown = shown.size;
    root.classList.toggle("few", shown.size <= data.many);
    repick();
    redraw(views.filter((name) => data.views[name].backbones));
  };
  const limit = (control) => { // to the values that another choice has for it, by the words of its name
    const { choice: name } = control.dataset;
    const left = Object.keys(choice).map((each) => data.choices[each]?.[choice[each]]?.[name]).find(Array.isArray);
    for (const option of left ? control.options : []) option.hidden = option.disabled = !left.includes(option.value);
    if (left && !left.includes(choice[name])) [choice[name]] = left;
    control.value = choice[name];
  };
  const apply = (changes) => {
    Object.assign(choice, changes);
    controls.forEach(limit);
    root.dataset.theme = choice.theme;
    redraw(views.filter((name) => data.views[name].choices.some((each) => each in changes)));
    if (filters.some((control) => control.dataset.choice in changes)) filter();
    if ("vectors" in changes) repick();
    if (!("task" in changes)) return;
    narrow();
    if (!kept.has("picked")) pick(picks.top());
    repick();
    if (matchMedia("(max-width: 640px)").matches && table) sort(taskPlace(), false);
  };
  const choose = (changes) => {
    remember(changes);
    apply(changes);
  };
  for (const control of controls) {
    const { choice: name } = control.dataset;
    const known = !data.choices[name] || kept.get(name) in data.choices[name];
    if (kept.has(name) && known) control.value = kept.get(name);
    choice[name] = control.value;
    control.addEventListener("input", () => choose({ [name]: control.value }));
  }

  // ---- what buttons do, by the attribute that they have --------------------------------------------------------
  const actions = {
    mark: (name) => highlight(mark === name ? "" : name),
    toggle: (name) => repicked(labels.filter((each) => (each === name) !== picked.has(each))),
    pick: (name) => repicked(picks[name]()),
    clear: () => choose(Object.fromEntries(filters.map((control) => [control.dataset.choice, ""]))),
    csv: (name) => save(csv(name), "text/csv", named(name), ".csv"),
    svg: async (name) => save(await drawn.get(name)?.view.toSVG(), "image/svg+xml", named(name), ".svg"),
    file: async (name) => save(await unpacked(data.files[name]).arrayBuffer(), "text/csv", name, ""),
  };
  document.addEventListener("click", ({ target }) => {
    const given = target.closest("button, input")?.dataset || {};
    for (const name of Object.keys(given)) actions[name]?.(given[name]);
  });

  // ---- the start --------------------------------------------------------------------------------------------------
  pick(table ? (kept.get("picked") || "").split("|") : labels);
  apply(choice);
  const sorted = heads.findIndex(({ textContent }) => [textContent, `-${textContent}`].includes(kept.get("sort")));
  if (sorted >= 0) sort(sorted, !kept.get("sort").startsWith("-"));
  for (const figure of all(".view")) watcher.observe(figure);
  for (const name of views) if (data.views[name].cursor) follow(name);
  highlight(mark);
  aim();
  root.dataset.ready = "yes";
})();
