"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const one = (query, place = document) => place.querySelector(query);
  const all = (query, place = document) => [...place.querySelectorAll(query)];
  const root = document.documentElement;
  root.classList.remove("plain");

  // ---- frames -----------------------------------------------------------------------------------
  const values = (column) => (Array.isArray(column) ? column : column.at.map((place) => column.texts[place]));
  const unpacked = (frame) => {
    const names = Object.keys(frame);
    const columns = names.map((name) => values(frame[name]));
    return columns[0].map((_, row) => Object.fromEntries(names.map((name, at) => [name, columns[at][row]])));
  };
  const frames = Object.fromEntries(Object.entries(data.frames).map(([name, frame]) => [name, unpacked(frame)]));
  const grouped = (rows, key) => {
    const found = new Map();
    for (const row of rows) found.has(row[key]) ? found.get(row[key]).push(row) : found.set(row[key], [row]);
    return found;
  };
  const by = {
    layers: grouped(frames.layers, "column"),
    best: grouped(frames.best, "column"),
    published: grouped(frames.published, "column"),
    column: new Map(frames.columns.map((row) => [row.column, row])),
    backbone: new Map(frames.backbones.map((row) => [row.backbone, row])),
    cost: new Map(frames.cost.map((row) => [`${row.layer}\n${row.backbone}`, row])),
  };
  const labels = frames.backbones.map((row) => row.backbone);

  // ---- what is shown ----------------------------------------------------------------------------
  const TOP = 7;
  const state = {
    task: frames.columns.length ? frames.columns[0].column : "",
    cost: data.axes.length ? data.axes[0][0] : "",
    backbone: labels.length ? labels[0] : "",
    shown: new Set(labels),
    picked: new Set(),
    cka: { table: "", first: "", second: "" },
  };
  const rank = (task) => (by.best.get(task) || []).map((row) => row.backbone);
  const picked = () => labels.filter((name) => state.picked.has(name) && state.shown.has(name));
  const top = () => rank(state.task).filter((name) => state.shown.has(name)).slice(0, TOP);
  const families = () => {
    const seen = new Set();
    return rank(state.task).filter((name) => {
      const family = by.backbone.get(name).family;
      return state.shown.has(name) && !seen.has(family) && seen.add(family);
    });
  };

  // ---- charts -----------------------------------------------------------------------------------
  const filled = (spec, words) => {
    if (Array.isArray(spec)) return spec.map((part) => filled(part, words));
    if (spec && typeof spec === "object")
      return Object.fromEntries(Object.entries(spec).map(([key, value]) => [key, filled(value, words)]));
    if (typeof spec !== "string") return spec;
    const whole = /^\{(\w+)\}$/.exec(spec);
    return whole ? words[whole[1]] : spec.replace(/\{(\w+)\}/g, (_, name) => String(words[name]));
  };
  const room = () => one("main").clientWidth - 110;
  const series = (names) => ({
    backbones: names,
    colours: names.map((name) => data.looks[name].color),
    shapes: names.map((name) => data.looks[name].shape),
    dashes: names.map((name) => data.looks[name].strokeDash),
    columns: Math.max(1, Math.floor(room() / (46 + 7 * Math.max(0, ...names.map((name) => name.length))))),
  });
  const aside = (task) => {
    const column = by.column.get(task) || {};
    return {
      metric: column.metric || "",
      axis: `${column.metric}, %`,
      floor: typeof column.floor === "number" ? [{ floor: column.floor }] : [],
      order: rank(task).filter((name) => state.shown.has(name)),
    };
  };
  const spread = (row) =>
    row.value.toFixed(1) + (row.ci_low === null ? "" : ` ± ${((row.ci_high - row.ci_low) / 2).toFixed(1)}`);
  const front = (rows) => {
    const sorted = [...rows].sort((a, b) => a.cost - b.cost || b.value - a.value);
    let best = -Infinity;
    return sorted.filter((row) => row.value > best && ((best = row.value), true));
  };
  const published = (task, names) => (by.published.get(task) || []).filter((row) => names.has(row.backbone));

  const BEST = ["column", "backbone", "family", "pooling", "layer", "depth", "value", "ci_low", "ci_high",
    "honest", "optimism", "group", "n"];
  const LAYERS = ["column", "backbone", "pooling", "layer", "depth", "value", "ci_low", "ci_high", "place", "chosen"];
  const views = {
    best: { columns: BEST, make: () => ({ rows: frames.best.filter((row) => state.shown.has(row.backbone)) }) },
    ranking: {
      columns: BEST,
      make: () => {
        const own = (by.best.get(state.task) || []).filter((row) => state.shown.has(row.backbone));
        const rows = own.map((row) => ({ ...row, label: room() > 380 ? `${spread(row)}, layer ${row.layer}/${row.depth}` : "" }));
        const others = published(state.task, state.shown).map((row) => ({ ...row, group: "published" }));
        const groups = Object.keys(data.groups).filter((name) => rows.some((row) => row.group === name));
        const words = { ...aside(state.task), groups, tones: groups.map((name) => data.groups[name]) };
        return { what: state.task, rows, drawn: [...rows, ...others], words };
      },
    },
    curves: {
      columns: LAYERS,
      make: () => {
        const names = picked();
        const own = new Set(names);
        const depths = new Set(names.map((name) => by.backbone.get(name).depth));
        const alike = depths.size <= 1;
        const at = (row) => ({ ...row, x: alike ? row.layer : row.layer / row.depth });
        const rows = (by.layers.get(state.task) || []).filter((row) => own.has(row.backbone));
        const others = published(state.task, own)
          .filter((row) => row.layer !== null)
          .map((row) => ({ ...at(row), place: "published" }));
        const words = { ...aside(state.task), ...series(names) };
        words.depth = alike ? "layer (block)" : "share of the depth";
        words.step = alike ? 1 : 0.1;
        return { what: state.task, rows, drawn: [...rows.map(at), ...others], words };
      },
    },
    depth_map: {
      columns: LAYERS,
      make: () => {
        const rows = (by.layers.get(state.task) || []).filter((row) => state.shown.has(row.backbone));
        return { what: state.task, rows, words: aside(state.task) };
      },
    },
    tradeoff: {
      columns: [...LAYERS, "cost", "front"],
      make: () => {
        const names = picked();
        const own = new Set(names);
        const rows = [];
        for (const row of by.layers.get(state.task) || []) {
          const cost = by.cost.get(`${row.layer}\n${row.backbone}`);
          if (!cost || cost[state.cost] === null || !state.shown.has(row.backbone)) continue;
          const value = state.cost === "parameters" ? cost.parameters / 1e6 : cost[state.cost];
          rows.push({ ...row, cost: value, shown: own.has(row.backbone), front: false, label: "" });
        }
        const costs = rows.map((row) => row.cost);
        const [least, most] = [Math.min(...costs), Math.max(...costs)];
        const wide = least > 0 && most > 20 * least;
        const along = (cost) => (wide ? Math.log(cost / least) / Math.log(most / least) : (cost - least) / (most - least || 1));
        let [before, last] = ["", -Infinity];
        for (const row of front(rows)) {
          row.front = true;
          if (row.backbone !== before && along(row.cost) - last >= data.apart) {
            row.label = `${row.backbone}, ${row.layer}`;
            last = along(row.cost);
          }
          before = row.backbone;
        }
        const scale = wide ? { type: "log", nice: false, padding: 14 } : { zero: false, nice: false, padding: 14 };
        const words = { ...aside(state.task), ...series(names), scale };
        words.cost = (data.axes.find((axis) => axis[0] === state.cost) || ["", ""])[1];
        return { what: state.task, rows, words };
      },
    },
    task_map: {
      columns: [...LAYERS, "share"],
      make: () => {
        const rows = [];
        for (const [, own] of grouped(frames.layers.filter((row) => row.backbone === state.backbone), "column")) {
          const most = Math.max(...own.map((row) => row.value));
          for (const row of own)
            rows.push({ ...row, share: most > 0 ? (100 * row.value) / most : 0, text: row.value.toFixed(0) });
        }
        const least = Math.min(...rows.map((row) => row.share));
        for (const row of rows) row.dark = row.share < least + 0.62 * (100 - least);
        if (one("main").clientWidth < 34 * new Set(rows.map((row) => row.layer)).size + 120)
          for (const row of rows) row.text = "";
        const order = frames.columns.map((row) => row.column);
        return { what: state.backbone, rows, words: { order: order.filter((name) => rows.some((row) => row.column === name)) } };
      },
    },
    alike: {
      columns: ["first", "second", "row", "column", "value"],
      make: () => {
        const { table, first, second } = state.cka;
        const words = { first, second };
        return { what: `${first} and ${second}, ${table}`, rows: matrix(table, first, second), words };
      },
    },
  };

  const matrix = (table, first, second) => {
    const found = data.alike.find(
      (grid) => grid.table === table &&
        ((grid.first === first && grid.second === second) || (grid.first === second && grid.second === first)),
    );
    if (!found) return [];
    const bytes = Uint8Array.from(atob(found.data), (letter) => letter.charCodeAt(0));
    const numbers = new DataView(bytes.buffer);
    const turned = found.first !== first;
    const rows = [];
    for (let i = 0; i < found.rows; i += 1)
      for (let j = 0; j < found.columns; j += 1) {
        const whole = numbers.getInt16(2 * (i * found.columns + j), true);
        if (whole === -32768) continue;
        const [row, column] = turned ? [j + 1, i + 1] : [i + 1, j + 1];
        rows.push({ first, second, row, column, value: whole / 10000 });
      }
    return rows;
  };

  const drawn = new Map();
  const turns = new Map();
  const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
  const draw = async (name) => {
    const figure = one(`#view-${name}`);
    if (!figure) return;
    const made = views[name].make();
    one(".what", figure).textContent = made.what ? `  ${made.what}` : "";
    const place = one(".chart", figure);
    if (drawn.has(name)) drawn.get(name).finalize();
    drawn.delete(name);
    place.textContent = "";
    const numbers = one(".numbers", figure);
    if (numbers.open) fillTable(name, numbers);
    if (!made.rows.length) {
      place.append(Object.assign(document.createElement("p"), { className: "empty", textContent: "Nothing to draw: no backbone is chosen that has a score here." }));
      return;
    }
    const lines = (made.words.order || []).length;
    const height = Math.max(2, lines) * (data.steps[name] || [0, 0])[lines > data.few ? 1 : 0];
    const spec = filled(data.charts[name], { ...made.words, height, ink: "currentColor", font: FONT });
    spec.data = { name: "rows", values: made.drawn || made.rows };
    const turn = (turns.get(name) || 0) + 1;
    turns.set(name, turn);
    const result = await vegaEmbed(place, spec, {
      mode: "vega-lite", renderer: "svg", actions: false, defaultStyle: false, tooltip: tell, logLevel: 1,
    });
    if (turns.get(name) !== turn) return void result.finalize(); // another one was asked for meanwhile
    drawn.set(name, result);
    place.setAttribute("aria-label", `${one("figcaption b", figure).textContent}: ${made.what}`);
    for (const mark of all("g[role=graphics-symbol]:empty", place)) mark.setAttribute("aria-hidden", "true");
  };

  // Charts are drawn when they come into view, and again when what they show has changed.
  const stale = new Set();
  const near = new Set();
  let asked = 0;
  const work = () => {
    asked = 0;
    for (const name of [...stale]) if (near.has(name)) { stale.delete(name); draw(name); }
  };
  const redraw = (...names) => {
    for (const name of names) stale.add(name);
    asked = asked || requestAnimationFrame(work);
  };
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) near[entry.isIntersecting ? "add" : "delete"](entry.target.dataset.view);
    asked = asked || requestAnimationFrame(work);
  }, { rootMargin: "500px" });
  window.addEventListener("beforeprint", () => {
    for (const name of [...stale]) draw(name);
    stale.clear();
  });
  let wide = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === wide) return;
    wide = window.innerWidth;
    redraw(...drawn.keys());
  });

  const tip = one("#tip");
  const tell = (_, event, item, value) => {
    tip.hidden = !value || typeof value !== "object";
    if (tip.hidden) return;
    const list = document.createElement("dl");
    for (const [name, text] of Object.entries(value)) {
      if (text === null || text === undefined || text === "" || /^(null|undefined|NaN)%?$/.test(String(text))) continue;
      const [term, said] = [document.createElement("dt"), document.createElement("dd")];
      term.textContent = name;
      said.textContent = String(text);
      list.append(term, said);
    }
    tip.replaceChildren(list);
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, window.innerWidth - width - 8))}px`;
    tip.style.top = `${event.clientY + 18 + height > window.innerHeight ? event.clientY - height - 12 : event.clientY + 18}px`;
  };

  // ---- numbers ----------------------------------------------------------------------------------
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(Math.round(value * 1e4) / 1e4);
    const text = /^'*[=+\-@\t\r\n]/.test(String(value)) ? `'${value}` : String(value); // no formula
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const csv = (name) => {
    const { columns, make } = views[name];
    const lines = make().rows.map((row) => columns.map((column) => cell(row[column])).join(","));
    return [columns.join(","), ...lines].join("\n") + "\n";
  };
  const fillTable = (name, details) => {
    const { columns, make } = views[name];
    const table = document.createElement("table");
    const head = table.createTHead().insertRow();
    for (const column of columns) {
      const named = document.createElement("th");
      named.scope = "col";
      named.textContent = column;
      head.append(named);
    }
    const body = table.createTBody();
    for (const row of make().rows) {
      const line = body.insertRow();
      for (const column of columns) {
        const place = line.insertCell();
        const value = row[column];
        place.textContent = typeof value === "number" ? cell(value) : value ?? "";
        if (typeof value === "string") place.className = "left";
      }
    }
    one(".scroll", details).replaceChildren(table);
  };
  const save = (link, parts, type, name) => {
    URL.revokeObjectURL(link.href);
    link.href = URL.createObjectURL(new Blob(parts, { type }));
    link.download = name;
  };
  const fileName = (name, ending) =>
    `${data.suite}.${name}${views[name].make().what ? `.${views[name].make().what}` : ""}`
      .replace(/[^\w.-]+/g, "-").slice(0, 100) + `.${ending}`;
  for (const link of all("a.csv"))
    link.addEventListener("click", () =>
      save(link, [csv(link.dataset.view)], "text/csv", fileName(link.dataset.view, "csv")));
  for (const button of all("button.svg"))
    button.addEventListener("click", async () => {
      const view = drawn.get(button.dataset.view);
      if (!view) return;
      const link = document.createElement("a");
      save(link, [await view.view.toSVG()], "image/svg+xml", fileName(button.dataset.view, "svg"));
      link.click();
    });
  for (const details of all(".numbers"))
    details.addEventListener("toggle", () => details.open && fillTable(details.closest(".view").dataset.view, details));
  const files = one(".files");
  for (const [name, text] of files ? Object.entries(data.files) : []) {
    const link = Object.assign(document.createElement("a"), { href: "#best", textContent: `all numbers: ${name}` });
    link.addEventListener("click", async (event) => {
      event.preventDefault();
      const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      const given = document.createElement("a");
      save(given, [await new Response(stream).arrayBuffer()], "text/csv", name);
      given.click();
    });
    files.append(link);
  }

  // ---- the table of best layers -----------------------------------------------------------------
  const table = one("#best-table");
  const heads = table ? all("thead th", table) : [];
  heads.forEach((head, place) => {
    const button = one("button", head);
    button.addEventListener("click", () => {
      const words = button.dataset.kind === "words";
      const now = head.getAttribute("aria-sort");
      const up = now === "none" ? button.dataset.kind !== "numbers" : now === "descending";
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const body = table.tBodies[0];
      const key = (row) => row.cells[place].dataset.v;
      const rows = [...body.rows].sort((a, b) => {
        const [first, second] = [key(a), key(b)];
        if (first === "" || second === "") return (first === "") - (second === "");
        const order = words ? first.localeCompare(second) : Number(first) - Number(second);
        return up ? order : -order;
      });
      body.append(...rows);
    });
  });

  // On a phone the table shows one task, the one that is chosen.
  const narrow = () => {
    for (const line of table ? table.rows : [])
      [...line.cells].forEach((place, at) => place.classList.toggle("off", at > 0 && at !== taskPlace()));
  };
  const taskPlace = () => heads.findIndex((head) => one("button", head).textContent === state.task);
  const more = (box) => box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
  const boxes = new ResizeObserver((entries) => entries.forEach((entry) => more(entry.target)));
  for (const box of all(".scroll")) {
    boxes.observe(box);
    box.addEventListener("scroll", () => more(box), { passive: true });
  }

  const form = one("#filters");
  const choose = (select, options) =>
    select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
  const distinct = (name) => [...new Set(frames.backbones.map((row) => row[name]))].filter(Boolean);
  const SIZES = [5e6, 25e6, 50e6, 100e6, 350e6, 1e9];
  if (form) {
    for (const name of ["family", "supervision", "licence"]) {
      const found = distinct(name);
      choose(form.elements[name], [["", "any"], ...found.map((text) => [text, text])]);
      form.elements[name].closest("label").hidden = found.length < 2;
    }
    const sizes = frames.backbones.map((row) => row.parameters).filter((size) => size !== null);
    const limits = SIZES.filter((size) => sizes.some((own) => own <= size) && sizes.some((own) => own > size));
    choose(form.elements.size, [["", "any"], ...limits.map((size) => [size, `up to ${size / 1e6} M`])]);
    form.elements.size.closest("label").hidden = !limits.length;
  }
  const passes = (row) => {
    const wanted = (name) => form.elements[name].value;
    return (
      row.backbone.toLowerCase().includes(wanted("find").trim().toLowerCase()) &&
      ["family", "supervision", "licence"].every((name) => !wanted(name) || row[name] === wanted(name)) &&
      (!wanted("size") || (row.parameters !== null && row.parameters <= Number(wanted("size"))))
    );
  };
  const filter = () => {
    state.shown = new Set(frames.backbones.filter(passes).map((row) => row.backbone));
    for (const row of table.tBodies[0].rows) row.hidden = !state.shown.has(row.dataset.backbone);
    one("#count").textContent = `${state.shown.size} of ${labels.length} backbones`;
    one("#nothing").hidden = state.shown.size > 0;
    one("#best .scroll").hidden = !state.shown.size;
    for (const label of all("#pick fieldset label")) label.hidden = !state.shown.has(label.dataset.backbone);
    repick();
    redraw("ranking", "curves", "depth_map", "tradeoff");
  };

  // ---- controls ---------------------------------------------------------------------------------
  const menu = one("#pick");
  const repick = () => {
    if (!menu) return;
    for (const box of all("input", menu)) box.checked = state.picked.has(box.value);
    one("summary", menu).textContent = `backbones: ${picked().length} of ${state.shown.size}`;
  };
  if (menu) {
    for (const name of labels) {
      const label = document.createElement("label");
      label.dataset.backbone = name;
      label.append(Object.assign(document.createElement("input"), { type: "checkbox", value: name }), ` ${name}`);
      one("fieldset", menu).append(label);
    }
    menu.addEventListener("change", (event) => {
      const { value, checked } = event.target;
      state.picked[checked ? "add" : "delete"](value);
      repick();
      redraw("curves", "tradeoff");
    });
    for (const button of all("[data-pick]", menu))
      button.addEventListener("click", () => {
        state.picked = new Set({ top, family: families, none: () => [] }[button.dataset.pick]());
        repick();
        redraw("curves", "tradeoff");
      });
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      menu.open = false;
      one("summary", menu).focus();
    });
    document.addEventListener("click", (event) => menu.contains(event.target) || (menu.open = false));
  }
  const tasks = all("#task, .task-twin");
  for (const select of tasks) {
    choose(select, frames.columns.map((row) => [row.column, row.column]));
    select.addEventListener("change", () => {
      state.task = select.value;
      for (const other of tasks) other.value = state.task;
      narrow();
      redraw("ranking", "curves", "depth_map", "tradeoff");
    });
  }
  const control = (query, options, now, set) => {
    const select = one(query);
    if (!select) return;
    if (options) choose(select, options.map((text) => [text, text]));
    select.value = now;
    select.addEventListener("change", () => set(select.value));
  };
  control("#cost", null, state.cost, (value) => { state.cost = value; redraw("tradeoff"); });
  control("#backbone", labels, state.backbone, (value) => { state.backbone = value; redraw("task_map"); });

  const cka = () => {
    const own = data.alike.filter((grid) => grid.table === state.cka.table);
    const there = new Set(own.flatMap((grid) => [grid.first, grid.second]));
    const firsts = labels.filter((name) => there.has(name));
    if (!firsts.includes(state.cka.first)) state.cka.first = firsts[0];
    const pairs = new Set(
      own.filter((grid) => [grid.first, grid.second].includes(state.cka.first))
        .map((grid) => (grid.first === state.cka.first ? grid.second : grid.first)),
    );
    const seconds = labels.filter((name) => pairs.has(name));
    if (!seconds.includes(state.cka.second)) state.cka.second = seconds[0];
    choose(one("#cka-first"), firsts.map((text) => [text, text]));
    choose(one("#cka-second"), seconds.map((text) => [text, text]));
    one("#cka-first").value = state.cka.first;
    one("#cka-second").value = state.cka.second;
    redraw("alike");
  };
  if (data.alike.length) {
    state.cka.table = data.alike[0].table;
    control("#cka-table", [...new Set(data.alike.map((grid) => grid.table))], state.cka.table, (value) => {
      state.cka.table = value;
      cka();
    });
    for (const side of ["first", "second"])
      one(`#cka-${side}`).addEventListener("change", (event) => {
        state.cka[side] = event.target.value;
        cka();
      });
    cka();
  }

  const theme = one("#theme");
  const dark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const named = () => {
    theme.textContent = dark() ? "light" : "dark";
    theme.setAttribute("aria-label", `Change to the ${dark() ? "light" : "dark"} theme`);
    theme.setAttribute("aria-pressed", String(dark()));
  };
  theme.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    named();
  });
  named();

  state.picked = new Set(top());
  if (form) {
    form.addEventListener("input", filter);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(() => {
      for (const select of tasks) select.value = state.task;
      filter();
    }));
    filter();
    narrow();
    root.classList.add("ready");
  }
  for (const figure of all(".view")) watcher.observe(figure);
  redraw(...Object.keys(views).filter((name) => name !== "best"));
  root.dataset.ready = "yes";
})();
