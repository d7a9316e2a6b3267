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
  const MANY = 24; // backbones above which charts of all show the best of each family first
  const state = {
    task: frames.columns.length ? frames.columns[0].column : "",
    cost: data.axes.length ? data.axes[0][0] : "",
    backbone: labels.length ? labels[0] : "",
    shown: new Set(labels), // what the filters let through
    picked: new Set(), // in the charts of lines
    hidden: new Set(), // of these, what the legend hides
    mark: data.highlight, // the backbone that stands out; "" for none
    members: false, // whether charts of all show every member of a family
    cka: { table: "", first: "", second: "" },
  };

  // State is kept in the address, behind the section: #best?task=knn+top-1&mark=mini-fs
  const [anchor, ...query] = location.hash.slice(1).split("?");
  const kept = new URLSearchParams(query.join("?"));
  const remember = (changes) => {
    for (const [name, value] of Object.entries(changes)) value ? kept.set(name, value) : kept.delete(name);
    const [page, hash = ""] = location.href.split("#");
    const chosen = hash.split("?")[0] + (kept.size ? `?${kept}` : "");
    history.replaceState(null, "", page + (chosen && `#${chosen}`)); // a mere # would part charts from their gradients
  };
  window.addEventListener("hashchange", () => remember({}));
  const known = (name, values, usual) => (values.includes(kept.get(name)) ? kept.get(name) : usual);
  const names = (name) => labels.filter((label) => (kept.get(name) || "").split("|").includes(label));
  state.task = known("task", frames.columns.map((row) => row.column), state.task);
  state.cost = known("cost", data.axes.map((axis) => axis[0]), state.cost);
  state.backbone = known("backbone", labels, state.backbone);
  state.mark = known("mark", labels, state.mark);
  state.hidden = new Set(names("hidden"));
  state.members = kept.has("members");
  if (kept.has("theme")) root.dataset.theme = kept.get("theme") === "dark" ? "dark" : "light";
  const rank = (task) => (by.best.get(task) || []).map((row) => row.backbone);
  const picked = () => labels.filter((name) => state.picked.has(name) && state.shown.has(name));
  const drawnLines = () => picked().filter((name) => !state.hidden.has(name));
  const top = () => rank(state.task).filter((name) => state.shown.has(name)).slice(0, TOP);
  const families = () => {
    const seen = new Set();
    return rank(state.task).filter((name) => {
      const family = by.backbone.get(name).family;
      return state.shown.has(name) && !seen.has(family) && seen.add(family);
    });
  };
  // Backbones of the charts of all: of many the best of each family, or all with families together.
  const listed = () => {
    const every = rank(state.task).filter((name) => state.shown.has(name));
    if (every.length <= MANY) return every;
    const firsts = families();
    if (!state.members) return firsts;
    const order = firsts.map((name) => by.backbone.get(name).family);
    const place = (name) => order.indexOf(by.backbone.get(name).family);
    return every.sort((a, b) => place(a) - place(b));
  };
  const listedWord = (found) =>
    found.length < state.shown.size ? `${state.task}, the best of each of ${found.length} families` : state.task;

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
    few: names.length <= data.bands,
    legend: null,
  });
  // Heights of labels at the ends of lines that cover no other label: as `charts.spaced` does.
  const withEnds = (rows, along, height) => {
    const last = new Map();
    for (const row of rows) if (!(last.get(row.backbone)?.layer > row.layer)) last.set(row.backbone, row);
    const all = rows.map((row) => row.value);
    const gap = (data.label / height) * (Math.max(...all) - Math.min(...all));
    const placed = [];
    for (const row of [...last.values()].sort((a, b) => b.value - a.value)) {
      const above = placed.filter((other) => Math.abs(along(other) - along(row)) < data.near);
      row.end = Math.min(row.value, ...above.map((other) => other.end - gap));
      row.name = row.backbone;
      placed.push(row);
    }
    return rows;
  };
  const aside = (task) => {
    const column = by.column.get(task) || {};
    return {
      metric: column.metric || "",
      axis: `${column.metric}, %`,
      floor: typeof column.floor === "number" ? [{ floor: column.floor }] : [],
      order: listed(),
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
        const found = listed();
        const own = (by.best.get(state.task) || []).filter((row) => found.includes(row.backbone));
        const rows = own.map((row) => ({ ...row, label: room() > 380 ? `${spread(row)}, layer ${row.layer}/${row.depth}` : "" }));
        const others = published(state.task, new Set(found)).map((row) => ({ ...row, group: "published" }));
        const words = { ...aside(state.task), ...series(found) };
        return { what: listedWord(found), rows, drawn: [...rows, ...others], words };
      },
    },
    curves: {
      columns: LAYERS,
      make: () => {
        const names = drawnLines();
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
        const lines = withEnds(rows.map(at), () => 1, 340);
        return { what: state.task, rows, drawn: [...lines, ...others], words };
      },
    },
    panels: {
      columns: LAYERS,
      make: () => {
        const made = views.curves.make();
        const order = rank(state.task).filter((name) => made.words.backbones.includes(name));
        const lines = made.drawn.filter((row) => row.place !== "published");
        const first = lines.filter((row) => row.backbone === order[0]);
        const drawn = order.flatMap((panel) => [
          ...(panel === order[0] ? [] : first.map((row) => ({ ...row, panel }))),
          ...lines.filter((row) => row.backbone === panel).map((row) => ({ ...row, panel })),
        ]);
        const columns = Math.max(1, Math.min(4, order.length, Math.floor(room() / 200)));
        const width = Math.floor((room() - 40) / columns) - 24;
        return { ...made, drawn, words: { ...made.words, ...series(order), columns, width } };
      },
    },
    depth_map: {
      columns: LAYERS,
      make: () => {
        const found = listed();
        const rows = (by.layers.get(state.task) || []).filter((row) => found.includes(row.backbone));
        return { what: listedWord(found), rows, words: aside(state.task) };
      },
    },
    tradeoff: {
      columns: [...LAYERS, "cost", "front"],
      make: () => {
        const names = drawnLines();
        const own = new Set(names);
        const rows = [];
        for (const row of by.layers.get(state.task) || []) {
          const cost = by.cost.get(`${row.layer}\n${row.backbone}`);
          if (!cost || cost[state.cost] === null || !state.shown.has(row.backbone)) continue;
          const value = state.cost === "parameters" ? cost.parameters / 1e6 : cost[state.cost];
          rows.push({ ...row, cost: value, shown: own.has(row.backbone), front: false });
        }
        const costs = rows.map((row) => row.cost);
        const [least, most] = [Math.min(...costs), Math.max(...costs)];
        const wide = least > 0 && most > 20 * least;
        const along = (cost) => (wide ? Math.log(cost / least) / Math.log(most / least) : (cost - least) / (most - least || 1));
        for (const row of front(rows)) row.front = true;
        withEnds(rows.filter((row) => row.shown), (row) => along(row.cost), 340);
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
    made.words.mark = (made.words.backbones || []).includes(state.mark) ? state.mark : "";
    made.words.ground = getComputedStyle(root).getPropertyValue("--card").trim();
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
    result.rows = made.drawn || made.rows;
    result.names = made.words.backbones || [];
    place.setAttribute("aria-label", `${one("figcaption b", figure).textContent}: ${made.what}`);
    for (const mark of all("g[role=graphics-symbol]:empty", place)) mark.setAttribute("aria-hidden", "true");
  };

  // The backbones at one place of the horizontal axis of the lines, by pointer or arrow keys.
  const cursor = (x, left, top) => {
    const { view, rows } = drawn.get("curves");
    view.signal("at", x).runAsync();
    tip.hidden = x === null;
    if (tip.hidden) return;
    const near = new Map();
    for (const row of rows.filter((row) => row.place !== "published"))
      if (!near.has(row.backbone) || Math.abs(row.x - x) < Math.abs(near.get(row.backbone).x - x)) near.set(row.backbone, row);
    const lines = [...near.values()].sort((a, b) => b.value - a.value);
    const depths = new Set(lines.map((row) => row.layer));
    const head = Object.assign(document.createElement("b"), { textContent: depths.size > 1 ? "layers" : `layer ${[...depths]}` });
    tip.replaceChildren(head, pairs(lines.map((row) => [row.backbone, spread(row) + (depths.size > 1 ? `, layer ${row.layer}` : "") + (row.place === "best" ? " ○" : "")]), swatch));
    put(left, top);
  };
  const follow = (place) => {
    const steps = () => [...new Set(drawn.get("curves").rows.map((row) => row.x))].sort((a, b) => a - b);
    const over = (x) => {
      const box = one("svg", place).getBoundingClientRect();
      const { view } = drawn.get("curves");
      return box.left + view.origin()[0] + view.scale("x")(x);
    };
    place.addEventListener("pointermove", (event) => {
      if (!drawn.has("curves")) return;
      const near = steps().sort((a, b) => Math.abs(over(a) - event.clientX) - Math.abs(over(b) - event.clientX))[0];
      cursor(near, event.clientX, event.clientY);
    });
    const leave = () => drawn.has("curves") && cursor(null);
    place.addEventListener("pointerleave", leave);
    place.addEventListener("blur", leave);
    place.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === "Escape") leave();
      if (!step || !drawn.has("curves")) return;
      event.preventDefault();
      const every = steps();
      const now = every.indexOf(drawn.get("curves").view.signal("at"));
      const x = every[Math.max(0, Math.min(every.length - 1, now < 0 ? (step > 0 ? 0 : every.length - 1) : now + step))];
      cursor(x, over(x), place.getBoundingClientRect().top + 40);
    });
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
    tip.replaceChildren(pairs(Object.entries(value)));
    put(event.clientX, event.clientY);
  };
  const pairs = (entries, before) => {
    const list = document.createElement("dl");
    for (const [name, text] of entries) {
      if (text === null || text === undefined || text === "" || /^(null|undefined|NaN)%?$/.test(String(text))) continue;
      const [term, said] = [document.createElement("dt"), document.createElement("dd")];
      term.textContent = name;
      if (before) term.prepend(before(name), " ");
      said.textContent = String(text);
      list.append(term, said);
    }
    return list;
  };
  const put = (left, top) => {
    const { width, height } = tip.getBoundingClientRect();
    const across = left + 14 + width > window.innerWidth - 8 ? left - width - 14 : left + 14;
    tip.style.left = `${Math.max(4, across)}px`;
    tip.style.top = `${Math.max(4, top + 18 + height > window.innerHeight ? top - height - 12 : top + 18)}px`;
  };

  // ---- how backbones look -----------------------------------------------------------------------
  const SHAPES = {
    circle: "M8 5a3.5 3.5 0 1 0 .01 0Z", square: "M5 5h7v7h-7Z", "triangle-up": "M8.5 4l4 8h-8Z",
    diamond: "M8.5 3.5l4 5-4 5-4-5Z", "triangle-down": "M8.5 13l4-8h-8Z", "triangle-right": "M13 8.5l-8-4v8Z",
    cross: "M7 4h3v3h3v3h-3v3h-3v-3h-3v-3h3Z",
  };
  const swatch = (name) => {
    const { color, shape, strokeDash } = data.looks[name];
    const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    for (const [key, value] of Object.entries({ class: "swatch", viewBox: "0 0 17 17", "aria-hidden": "true" }))
      drawing.setAttribute(key, value);
    for (const values of [
      { d: "M0 8.5h17", stroke: color, "stroke-width": 1.5, "stroke-dasharray": strokeDash.join(" ") },
      { d: SHAPES[shape], fill: color },
    ]) {
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      for (const [key, value] of Object.entries(values)) path.setAttribute(key, value);
      drawing.append(path);
    }
    return drawing;
  };
  const light = (name) => {
    for (const { names, view } of drawn.values())
      if (names.length) view.signal("mark", names.includes(name) ? name : "").runAsync();
  };
  const legends = all(".legend");
  const legend = () => {
    for (const list of legends)
      list.replaceChildren(...picked().map((name) => {
        const [item, mark, hide] = ["li", "button", "button"].map((tag) => document.createElement(tag));
        const hidden = state.hidden.has(name);
        mark.type = hide.type = "button";
        mark.append(swatch(name), ` ${name}`);
        mark.title = "Highlight";
        mark.setAttribute("aria-pressed", String(state.mark === name));
        hide.textContent = hidden ? "show" : "hide";
        hide.setAttribute("aria-label", `${hidden ? "Show" : "Hide"} ${name}`);
        item.classList.toggle("hid", hidden);
        item.dataset.backbone = name;
        mark.addEventListener("click", () => highlight(state.mark === name ? "" : name));
        hide.addEventListener("click", () => {
          state.hidden[hidden ? "delete" : "add"](name);
          remember({ hidden: [...state.hidden].join("|") });
          legend();
          redraw("curves", "panels", "tradeoff");
          one(`li[data-backbone="${CSS.escape(name)}"] button + button`, list).focus();
        });
        for (const [event, lit] of [["pointerenter", true], ["pointerleave", false]])
          mark.addEventListener(event, () => light(lit ? name : state.mark));
        item.append(mark, hide);
        return item;
      }));
  };
  const highlight = (name) => {
    state.mark = name;
    remember({ mark: name });
    light(name);
    for (const item of all(".legend li"))
      one("button", item).setAttribute("aria-pressed", String(item.dataset.backbone === name));
    for (const row of all("#best-table tbody tr")) row.classList.toggle("marked", row.dataset.backbone === name);
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
      const now = head.getAttribute("aria-sort");
      const up = now === "none" ? button.dataset.kind !== "numbers" : now === "descending";
      sort(place, up);
      remember({ sort: `${up ? "" : "-"}${button.textContent}` });
    });
  });
  const sort = (place, up) => {
    const words = one("button", heads[place]).dataset.kind === "words";
    for (const other of heads) other.setAttribute("aria-sort", "none");
    heads[place].setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => row.cells[place].dataset.v;
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      const [first, second] = [key(a), key(b)];
      if (first === "" || second === "") return (first === "") - (second === "");
      const order = words ? first.localeCompare(second) : Number(first) - Number(second);
      return up ? order : -order;
    });
    table.tBodies[0].append(...rows);
  };
  const sorted = heads.findIndex((head) => [head.textContent, `-${head.textContent}`].includes(kept.get("sort")));
  if (sorted >= 0) sort(sorted, !kept.get("sort").startsWith("-"));
  for (const row of table ? table.tBodies[0].rows : []) row.cells[0].prepend(swatch(row.dataset.backbone), " ");

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
  const FILTERS = ["find", "family", "size", "supervision", "licence"];
  const TASK = ["ranking", "curves", "panels", "depth_map", "tradeoff"]; // charts of one task
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
    remember(Object.fromEntries(FILTERS.map((name) => [name, form.elements[name].value])));
    for (const box of all(".many")) box.hidden = state.shown.size <= MANY;
    for (const label of all("#pick fieldset label")) label.hidden = !state.shown.has(label.dataset.backbone);
    repick();
    redraw(...TASK);
  };

  // ---- controls ---------------------------------------------------------------------------------
  const menu = one("#pick");
  const repick = () => {
    if (!menu) return;
    for (const box of all("input", menu)) box.checked = state.picked.has(box.value);
    one("summary", menu).textContent = `backbones: ${picked().length} of ${state.shown.size}`;
    legend();
    grid();
  };
  const repicked = () => {
    state.hidden.clear();
    remember({ picked: [...state.picked].join("|"), hidden: "" });
    repick();
    redraw("curves", "panels", "tradeoff");
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
      repicked();
    });
    for (const button of all("[data-pick]", menu))
      button.addEventListener("click", () => {
        state.picked = new Set({ top, family: families, none: () => [] }[button.dataset.pick]());
        repicked();
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
    select.value = state.task;
    select.addEventListener("change", () => {
      state.task = select.value;
      for (const other of tasks) other.value = state.task;
      narrow();
      remember({ task: state.task });
      if (!kept.has("picked")) state.picked = new Set(top());
      repick();
      if (matchMedia("(max-width: 640px)").matches) sort(taskPlace(), false);
      redraw(...TASK);
    });
  }
  const control = (query, options, now, set) => {
    const select = one(query);
    if (!select) return;
    if (options) choose(select, options.map((text) => [text, text]));
    select.value = now;
    select.addEventListener("change", () => set(select.value));
  };
  control("#cost", null, state.cost, (value) => { state.cost = value; remember({ cost: value }); redraw("tradeoff"); });
  control("#backbone", labels, state.backbone, (value) => { state.backbone = value; remember({ backbone: value }); redraw("task_map"); });
  const members = one("#members");
  if (members) {
    members.checked = state.members;
    members.addEventListener("change", () => {
      state.members = members.checked;
      remember({ members: state.members ? "all" : "" });
      redraw("ranking", "depth_map");
    });
  }

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
    grid();
    redraw("alike");
  };
  const compare = (changes) => {
    Object.assign(state.cka, changes);
    cka();
    remember({ cka: Object.values(state.cka).join("|") });
  };
  // CKA of the chosen backbones as small pictures, each of which is enlarged when it is pressed.
  const RAMP = data.ramp.map((colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)));
  const small = (cells, rows, columns) => {
    const canvas = Object.assign(document.createElement("canvas"), { width: columns, height: rows });
    const image = new ImageData(columns, rows);
    for (const { row, column, value } of cells) {
      const colour = RAMP[Math.round(Math.max(0, Math.min(1, value)) * (RAMP.length - 1))];
      image.data.set([...colour, 255], 4 * ((rows - row) * columns + column - 1));
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas;
  };
  const MOST = 12; // backbones of the grid
  const grid = () => {
    const place = one("#cka-grid");
    if (!place || !state.cka.table) return;
    const own = data.alike.filter((matrix) => matrix.table === state.cka.table);
    const found = picked().filter((name) => own.some((matrix) => [matrix.first, matrix.second].includes(name))).slice(0, MOST);
    const body = document.createElement("table");
    const head = body.insertRow();
    for (const name of ["", ...found]) {
      const cell = Object.assign(document.createElement(name ? "th" : "td"), { textContent: name });
      if (name) cell.scope = "col";
      head.append(cell);
    }
    for (const first of found) {
      const line = body.insertRow();
      line.append(Object.assign(document.createElement("th"), { scope: "row", textContent: first }));
      for (const second of found) {
        const cell = line.insertCell();
        const cells = matrix(state.cka.table, first, second);
        if (!cells.length) continue;
        const size = (name) => Math.max(...cells.map((each) => each[name]));
        const button = Object.assign(document.createElement("button"), { type: "button", title: `${first} and ${second}` });
        const mean = cells.reduce((sum, each) => sum + each.value, 0) / cells.length;
        button.setAttribute("aria-label", `${first} and ${second}: mean CKA ${mean.toFixed(2)}`);
        button.setAttribute("aria-pressed", String(first === state.cka.first && second === state.cka.second));
        button.append(small(cells, size("row"), size("column")));
        button.addEventListener("click", () => {
          compare({ first, second });
          one("#cka-grid [aria-pressed=true]").focus();
        });
        cell.append(button);
      }
    }
    place.replaceChildren(body);
  };
  if (data.alike.length) {
    const [table, first, second] = (kept.get("cka") || "").split("|");
    state.cka.table = data.alike.some((grid) => grid.table === table) ? table : data.alike[0].table;
    Object.assign(state.cka, { first, second });
    const tables = [...new Set(data.alike.map((grid) => grid.table))];
    control("#cka-table", tables, state.cka.table, (value) => compare({ table: value }));
    for (const side of ["first", "second"])
      one(`#cka-${side}`).addEventListener("change", (event) => compare({ [side]: event.target.value }));
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
    remember({ theme: root.dataset.theme });
    named();
    redraw("ranking"); // whose hollow marks have the colour of the ground
  });
  named();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    named();
    redraw("ranking");
  });

  for (const name of FILTERS) if (form && kept.has(name)) form.elements[name].value = kept.get(name);
  state.picked = new Set(kept.has("picked") ? names("picked") : top());
  if (state.mark) state.picked.add(state.mark);
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
  if (one("#view-curves .chart")) follow(one("#view-curves .chart"));
  for (const name of all("[data-swatch]")) name.prepend(swatch(name.dataset.swatch), " ");
  highlight(state.mark);
  // Charts that are drawn later keep their room, so that what is below stays where it is.
  for (const figure of all(".view")) {
    const [few, many] = data.steps[figure.dataset.view] || [0, 0];
    const lines = { task_map: frames.columns.length }[figure.dataset.view] || listed().length;
    const rows = Math.ceil(picked().length / Math.max(1, Math.min(4, Math.floor(room() / 200))));
    const heights = { curves: 400, tradeoff: 400, panels: 60 + 150 * rows, alike: 380 };
    const height = heights[figure.dataset.view] || 80 + lines * (lines > data.few ? many : few);
    one(".chart", figure).style.minHeight = `${height}px`;
  }
  document.getElementById(anchor)?.scrollIntoView();
  redraw(...Object.keys(views).filter((name) => name !== "best"));
  root.dataset.ready = "yes";
})();
