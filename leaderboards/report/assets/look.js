"use strict";
(async () => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const one = (query, place = document) => place.querySelector(query);
  const made = (tag, words = {}, ...inside) => {
    const element = Object.assign(document.createElement(tag), words);
    element.append(...inside);
    return element;
  };
  const root = document.documentElement;
  root.classList.remove("plain");

  // ---- what the page holds: for each layer the tokens, their colours, then each map of each picture -----------
  const packed = Uint8Array.from(atob(one("#content").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let place = 0;
  const taken = (count) => bytes.subarray(place, (place += count));
  for (const backbone of data.backbones)
    for (const layer of backbone.layers) {
      const sizes = layer.grids.map(([rows, columns]) => rows * columns);
      layer.starts = sizes.map((_, index) => sizes.slice(0, index).reduce((sum, size) => sum + size, 0));
      const cells = sizes.reduce((sum, size) => sum + size, 0);
      layer.tokens = new Int8Array(taken(cells * layer.steps.length).slice().buffer);
      layer.colours = taken(cells * 3);
      layer.levels = Object.fromEntries(Object.keys(layer.maps).map((name) => [name, taken(cells)]));
      for (const matrix of layer.matrices) {
        const [count, tokens] = matrix.shape;
        matrix.tops = new Float32Array(taken(4 * count * tokens).slice().buffer); // largest number of each row
        matrix.levels = taken(count * tokens * tokens);
      }
    }
  const most = Math.max(...data.backbones.map((backbone) => backbone.layers.length));
  const heads = [...new Set(data.backbones.flatMap((backbone) =>
    backbone.layers.flatMap((layer) => Object.keys(layer.maps).filter((name) => name.startsWith("head")))))];

  const walled = () => state.columns === "wall";
  const single = () => ["heads", "wall"].includes(state.columns); // maps of single heads
  const fromPatch = () => state.view === "similarity" && state.columns === "heads"; // attention beside cosine
  const fits = () => state.view === "attention" || (["similarity", "matrix"].includes(state.view) && !walled());

  // ---- state, which the address of the page keeps --------------------------------------------------------------
  const layerOf = (backbone, place) =>
    backbone.layers[most > 1 ? Math.round((place * (backbone.layers.length - 1)) / (most - 1)) : 0];
  const separated = Array.from({ length: most }, (_, place) =>
    data.backbones.reduce((sum, backbone) => sum + layerOf(backbone, place).share, 0));
  const state = { view: "colours", columns: "pictures", layer: separated.indexOf(Math.max(...separated)),
    head: "attention", cells: "smooth", below: 0, picture: 0, x: 0.5, y: 0.5, pinned: 0, theme: "" };
  for (const [name, text] of new URLSearchParams(location.hash.slice(1)))
    if (name in state) state[name] = typeof state[name] === "number" ? Number(text) || 0 : text;
  const within = (value, low, high) => Math.min(high, Math.max(low, value));
  state.layer = within(Math.round(state.layer), 0, most - 1);
  state.picture = within(Math.round(state.picture), 0, data.pictures.length - 1);
  for (const axis of ["x", "y"]) state[axis] = within(state[axis], 0, 0.9999);
  const keep = () => {
    const words = Object.entries(state).filter(([, value]) => value !== "");
    const short = words.map(([name, value]) => [name, "xy".includes(name) ? value.toFixed(4) : String(value)]);
    const [page] = location.href.split("#"); // the address of a page in a notebook's frame is not its base
    history.replaceState(null, "", `${page}#${new URLSearchParams(short)}`);
  };

  // ---- numbers ---------------------------------------------------------------------------------------------------
  const cellAt = (layer, picture) => {
    const [rows, columns] = layer.grids[picture];
    return [Math.floor(state.y * rows), Math.floor(state.x * columns)];
  };
  const cosines = (layer) => {
    const [width, { tokens, steps, square }] = [layer.steps.length, layer];
    const [row, column] = cellAt(layer, state.picture);
    const chosen = layer.starts[state.picture] + row * layer.grids[state.picture][1] + column;
    const own = chosen * width;
    const weights = steps.map((step, at) => step * step * tokens[own + at]);
    const last = width - 1;
    const base = square + tokens[own + last] * steps[last];
    return Float32Array.from({ length: tokens.length / width }, (_, cell) => {
      if (cell === chosen) return 1;
      let sum = base + tokens[cell * width + last] * steps[last];
      for (let at = 0; at < last; at++) sum += weights[at] * tokens[cell * width + at];
      return within(sum, -1, 1);
    });
  };
  const part = (layer, values, picture, each = 1) => {
    const [rows, columns] = layer.grids[picture];
    return values.subarray(layer.starts[picture] * each, (layer.starts[picture] + rows * columns) * each);
  };
  const attended = (layer, picture, head) => { // of all tokens, or of the chosen patch, as a map
    const { prefix, grid: [tall, wide], shape: [count, tokens], tops, levels } = layer.matrices[picture] || { grid: [], shape: [] };
    const at = head === "attention" ? 0 : Number(head.slice(5));
    if (!(at < count)) return null;
    const value = (row, column) => (tops[at * tokens + row] * levels[(at * tokens + row) * tokens + column]) / 255;
    if (state.view === "matrix")
      return { rows: tokens, columns: tokens,
        values: Float32Array.from({ length: tokens * tokens }, (_, cell) => value(Math.floor(cell / tokens), cell % tokens)) };
    // cells of the last row and column may have fewer patches
    const step = Math.ceil(Math.max(...layer.grids[picture]) / Math.max(tall, wide));
    const [row, column] = cellAt(layer, picture).map((place) => Math.floor(place / step));
    return { rows: tall, columns: wide,
      values: Float32Array.from({ length: tall * wide }, (_, cell) => value(prefix + row * wide + column, prefix + cell)) };
  };
  const endsOf = (values) => // a map may have more cells than a function has arguments
    values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
  const layerName = (layer) => (layer.name === "final" ? "final norm" : `layer ${layer.name}`);
  const text = (name, value) =>
    name === "similarity" ? value.toFixed(2) : name === "length" ? value.toPrecision(3) : `${(100 * value).toFixed(1)} %`;

  const aside = (backbone, lengths) => {
    const [own, others] = [lengths.slice(0, Number(backbone.hasCls)), lengths.slice(Number(backbone.hasCls))];
    const ends = others.length ? [Math.min(...others), Math.max(...others)].map((end) => text("length", end)) : [];
    const registers = others.length ? [`${others.length} registers ${[...new Set(ends)].join(" to ")}`] : [];
    return ["", ...own.map((length) => `class token ${text("length", length)}`), ...registers].join("; ");
  };

  // ---- maps: a cell of the page shows one layer of one backbone on one picture -----------------------------------
  const READING = {
    colours: "The three directions along which the patches of a layer differ most, over all pictures, as red, green and " +
      "blue. Patches of one colour are alike. Colours are rotated to match the next layer's, so they can be followed. The page " +
      "opens at the layer where these directions hold most of the variance.",
    similarity: "Cosine of the chosen patch (square) with every patch of all pictures, dark where lowest, bright where " +
      "highest. A ring marks the most similar patch of each other picture. Move over a picture or map; click to hold the " +
      "patch. By keyboard: choose a picture, then the arrow keys.",
    attention: "Share of its attention that the class token gives to each patch, by the mean of all heads or one head. " +
      "Each map goes from its lowest (dark) to its highest number (bright); the rest of 100 % goes to the class token " +
      "itself and to registers.",
    wall: "Attention of the class token in the chosen picture: rows are heads, columns layers; each map is named " +
      "layer.head. A frame says where the patches of this picture look in that head, on average:",
    from: "Cosine of the chosen patch (square) with every patch, and beside it the share of its attention that this patch " +
      "gives to each patch, by the mean of all heads and by each head, dark where lowest, bright where highest. Where a " +
      "picture has many patches, those of a square are taken together.",
    matrix: "Attention of every token (rows) to every token (columns), by the mean of all heads or one head: the class token " +
      "and registers first, then the patches line by line. Bright where highest, by the square root. Where a picture " +
      "has many patches, those of a square are taken together.",
    rollout: "How much of each patch has reached the class token up to this layer, if attention and skip connection count " +
      "alike in every layer (attention rollout, mean over heads).",
    length: "Length (norm) of each patch token, dark to bright over all pictures. A few very long ones often hold global " +
      "instead of local information.",
  };
  const mapOf = (view, head) => (view === "attention" || fromPatch() ? head : view);
  const paint = (cell, near) => {
    const layer = cell.layer();
    const { canvas, stack, caption } = cell;
    const title = cell.title();
    const name = mapOf(state.view, cell.head || state.head);
    const ofTokens = state.view === "matrix" || (fromPatch() && name !== "similarity");
    const matrix = ofTokens && attended(layer, cell.picture, cell.head || state.head);
    const [rows, columns] = matrix ? [matrix.rows, matrix.columns] : layer.grids[cell.picture];
    const there = ofTokens ? matrix : name === "colours" || name === "similarity" || name in layer.maps;
    if (state.view === "matrix") stack.style.aspectRatio = "1";
    canvas.hidden = !there;
    for (const mark of stack.querySelectorAll(".mark, span")) mark.remove();
    cell.there = there;
    if (!there) {
      stack.className = "stack missing";
      stack.append(made("span", { textContent: "none" }));
      caption.textContent = title;
      return;
    }
    stack.className = "stack";
    const image = new ImageData(columns, rows);
    const fill = (colour) => {
      for (let at = 0; at < rows * columns; at++) image.data.set([...colour(at), 255], at * 4);
    };
    let span = "";
    if (name === "colours") {
      const colours = part(layer, layer.colours, cell.picture, 3);
      fill((at) => colours.subarray(at * 3, at * 3 + 3));
    } else if (matrix) {
      const [low, high] = endsOf(matrix.values);
      const level = (share) => (state.view === "matrix" ? Math.sqrt(share) : share);
      fill((at) => data.ramp[within(Math.floor(level((matrix.values[at] - low) / (high - low || 1)) * 64), 0, 63)]);
      span = `${text(name, low)} to ${text(name, high)}`;
    } else {
      const alike = name === "similarity" && near.get(layer);
      const values = part(layer, alike ? alike.values : layer.levels[name], cell.picture);
      const [low, high] = alike ? endsOf(values) : layer.maps[name][cell.picture];
      const [first, range] = alike ? [alike.low, alike.high - alike.low || 1] : [0, 255];
      fill((at) => data.ramp[within(Math.floor(((values[at] - first) / range) * 64), 0, 63)]);
      span = `${text(name, low)} to ${text(name, high)}`;
      const sum = values.reduce((all, level) => all + low + ((high - low) * level) / 255, 0);
      if (state.view === "attention") span += `, together ${text(name, sum)}`;
      if (name === "length") span += aside(cell.backbone, layer.prefixLengths[cell.picture]);
      if (name === "similarity" && cell.picture !== state.picture)
        stack.append(marked("mark nearest", values.indexOf(high), rows, columns));
    }
    if (state.view === "similarity" && cell.picture === state.picture) {
      const [row, column] = cellAt(layer, cell.picture);
      stack.append(marked("mark", row * columns + column, rows, columns));
    }
    canvas.width = columns;
    canvas.height = rows;
    canvas.getContext("2d").putImageData(image, 0, 0);
    canvas.style.opacity = 1 - state.below / 100;
    canvas.setAttribute("aria-label", `${cell.backbone.name}, ${layerName(layer)}, ` +
      `${data.pictures[cell.picture].name}: ${name}${span && `, ${span}`}`);
    caption.textContent = [title, walled() ? "" : span].filter(Boolean).join(": ");
    const kind = walled() && layer.kinds[cell.picture][cell.head.slice(5) - 1];
    stack.style.outline = kind ? `3px solid ${data.kinds[kind][0]}` : "";
    stack.title = kind ? `${kind}: ${span}` : "";
  };
  const marked = (kind, at, rows, columns) => {
    const mark = made("div", { className: kind });
    Object.assign(mark.style, { left: `${((at % columns) / columns) * 100}%`, top: `${(Math.floor(at / columns) / rows) * 100}%`,
      width: `${100 / columns}%`, height: `${100 / rows}%` });
    return mark;
  };

  const legend = () =>
    Object.entries(data.kinds).map(([kind, [colour, meaning]]) => {
      const mark = made("span", { className: "kind", textContent: `${kind} (${meaning})` });
      mark.style.borderColor = colour;
      return mark;
    });

  // ---- nearest patches ---------------------------------------------------------------------------------------------
  const images = data.pictures.map((picture) => made("img", { src: picture.source, alt: "" }));
  const nearest = (layer, values, list) => {
    const [row, column] = cellAt(layer, state.picture);
    const found = [];
    layer.grids.forEach(([rows, wide], picture) => {
      for (let at = 0; at < rows * wide; at++) {
        const [down, right] = [Math.floor(at / wide), at % wide];
        const around = picture === state.picture && Math.abs(down - row) <= 1 && Math.abs(right - column) <= 1;
        if (!around) found.push([values[layer.starts[picture] + at], picture, down, right]);
      }
    });
    found.sort((a, b) => b[0] - a[0]);
    const items = [[null, state.picture, row, column], ...found.slice(0, 6)];
    list.replaceChildren(...items.map(([value, picture, down, right]) => {
      const [rows, wide] = layer.grids[picture];
      const canvas = made("canvas", { width: 84, height: 84 });
      const { width, height } = data.pictures[picture];
      const [x, y] = [((right - 1) / wide) * width, ((down - 1) / rows) * height];
      canvas.getContext("2d").drawImage(images[picture], x, y, (3 * width) / wide, (3 * height) / rows, 0, 0, 84, 84);
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", `${data.pictures[picture].name}, row ${down + 1}, column ${right + 1}`);
      return made("li", {}, canvas, value === null ? "nearest:" : text("similarity", value));
    }));
  };

  // ---- the rows of the page ------------------------------------------------------------------------------------------
  const board = one("#maps");
  let cells = [];
  let rows = [];
  const stackOf = (tag, picture) => {
    const { width, height, source } = data.pictures[picture];
    const stack = made(tag, { className: "stack" }, made("img", { src: source, alt: "" }));
    stack.style.aspectRatio = `${width} / ${height}`;
    for (const kind of ["pointermove", "pointerdown"])
      stack.addEventListener(kind, (event) => {
        if (state.view !== "similarity" || (kind === "pointermove" && state.pinned)) return;
        const box = stack.getBoundingClientRect();
        choose(picture, (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
        if (kind === "pointerdown") state.pinned = 1 - state.pinned;
        draw();
      });
    return stack;
  };
  const choose = (picture, x, y) => {
    const moved = picture !== state.picture;
    Object.assign(state, { picture, x: within(x, 0, 0.9999), y: within(y, 0, 0.9999) });
    if (moved && state.columns !== "pictures") build();
  };
  const pictureRow = () => {
    const strip = made("div", { className: "strip" });
    data.pictures.forEach((picture, index) => {
      const button = stackOf("button", index);
      button.type = "button";
      button.dataset.picture = index;
      button.addEventListener("focus", () => button.matches(":focus-visible") && (choose(index, state.x, state.y), draw()));
      button.addEventListener("click", () => (choose(index, state.x, state.y), draw()));
      button.addEventListener("keydown", (event) => {
        const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
        if (!step) return;
        event.preventDefault();
        const [tall, wide] = layerOf(data.backbones[0], state.layer).grids[index];
        const [row, column] = [Math.floor(state.y * tall), Math.floor(state.x * wide)];
        state.pinned = 1;
        choose(index, (column + step[0] + 0.5) / wide, (row + step[1] + 0.5) / tall);
        draw();
      });
      strip.append(made("figure", {}, button, made("figcaption", { textContent: picture.name })));
    });
    return made("div", { className: "row" }, strip);
  };
  const backboneRow = (backbone) => {
    const head = made("h2");
    const strip = made("div", { className: "strip" });
    const near = made("ul", { className: "near" });
    const note = made("p");
    const add = (picture, layer, title, headName) => {
      const canvas = made("canvas");
      canvas.setAttribute("role", "img");
      const stack = stackOf("div", picture);
      stack.append(canvas);
      const caption = made("figcaption");
      strip.append(made("figure", {}, stack, caption));
      cells.push({ backbone, picture, layer, title, head: headName, canvas, stack, caption });
    };
    const now = () => layerOf(backbone, state.layer);
    if (state.columns === "layers")
      for (const layer of backbone.layers) add(state.picture, () => layer, () => layerName(layer));
    else if (state.columns === "heads")
      for (const name of [...(fromPatch() ? ["similarity"] : []), "attention", ...heads.filter((name) => name in backbone.layers[0].maps)])
        add(state.picture, now, () => ({ attention: "mean", similarity: "cosine" })[name] || name, name);
    else if (walled()) {
      const layers = backbone.layers.filter((layer) => layer.kinds.length);
      strip.classList.add("wall");
      strip.style.setProperty("--count", layers.length);
      for (const name of heads)
        for (const layer of layers)
          if (name in layer.maps) add(state.picture, () => layer, () => `${layer.name}.${name.slice(5)}`, name);
    } else data.pictures.forEach((picture, index) => add(index, now, () => ""));
    rows.push({ backbone, head, note, strip, near, now });
    return made("div", { className: "row" }, head, note, strip, near);
  };
  const build = () => {
    const focused = document.activeElement?.dataset?.picture;
    [cells, rows] = [[], []];
    const columns = { pictures: data.pictures.length, layers: most, heads: heads.length + 1, wall: most }[state.columns];
    const least = { pictures: 150, wall: 36 }[state.columns] || 110;
    const wide = within(Math.floor((board.clientWidth - 10) / columns) - 10, least, walled() ? 90 : 340);
    board.style.setProperty("--wide", `${wide}px`);
    board.replaceChildren(pictureRow(), ...data.backbones.map(backboneRow));
    if (focused !== undefined) one(`[data-picture="${focused}"]`).focus();
  };
  let waiting = 0;
  const draw = () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(show);
  };
  const show = () => {
    const near = new Map();
    const wanted = state.view === "similarity" ? new Set(cells.map((cell) => cell.layer())) : [];
    for (const layer of wanted) {
      const values = cosines(layer);
      const others = values.toSorted();
      near.set(layer, { values, low: others[0], high: others[others.length - 2] }); // the last is the patch itself
    }
    board.classList.toggle("blocks", state.cells === "blocks");
    for (const cell of cells) paint(cell, near);
    for (const { backbone, head, note, strip, near: list, now } of rows) {
      const layer = now();
      const depth = layer.name === "final" ? `after ${backbone.depth} blocks` : `of ${backbone.depth}`;
      const every = { layers: "its layers", wall: "every head of its layers" }[state.columns];
      const words = every || `${layerName(layer)} ${depth}`;
      head.replaceChildren(`${backbone.name} `, made("span", { textContent: `${words} (${backbone.about})` }));
      strip.hidden = !cells.some((cell) => cell.backbone === backbone && cell.there);
      note.hidden = !strip.hidden && (!["attention", "matrix", "rollout"].includes(state.view) || !backbone.notes.length);
      note.textContent = backbone.notes.join(" ") || `${backbone.name} has no ${state.head}.`;
      list.hidden = state.view !== "similarity" || state.columns === "layers";
      if (!list.hidden) nearest(layer, near.get(layer).values, list);
    }
    for (const button of board.querySelectorAll("button.stack")) {
      const index = Number(button.dataset.picture);
      button.setAttribute("aria-pressed", String(index === state.picture));
      button.setAttribute("aria-label", `${data.pictures[index].name}: choose; arrow keys move the patch`);
      one(".mark", button)?.remove();
      const layer = layerOf(data.backbones[0], state.layer);
      const [row, column] = cellAt(layer, index);
      const [tall, wide] = layer.grids[index];
      if (state.view === "similarity" && index === state.picture) button.append(marked("mark", row * wide + column, tall, wide));
    }
    const first = layerOf(data.backbones[0], state.layer);
    const [row, column] = cellAt(first, state.picture);
    one("#reading").replaceChildren(READING[walled() ? "wall" : fromPatch() ? "from" : state.view], ...(walled() ? legend() : []));
    one("#chosen").textContent = state.view === "similarity"
      ? `Patch in row ${row + 1}, column ${column + 1} of ${data.pictures[state.picture].name}` +
        `${state.pinned ? ", held: click again to let it follow the pointer" : ""}.`
      : "";
    one("#layer-name").textContent = first.name;
    one("#layer").setAttribute("aria-valuetext", layerName(first));
    one(".of-layer").hidden = state.columns === "layers" || walled();
    one(".of-head").hidden = !["attention", "matrix"].includes(state.view) || single() || !heads.length;
    keep();
  };

  // ---- controls --------------------------------------------------------------------------------------------------------
  one("#head").replaceChildren(new Option("mean", "attention"), ...heads.map((name) => new Option(name.slice(5), name)));
  one("#layer").max = most - 1;
  for (const name of ["view", "columns", "layer", "head", "cells", "below"]) {
    const control = one(`#${name}`);
    if (control.tagName === "SELECT" && ![...control.options].some((option) => option.value === state[name]))
      state[name] = control.options[0].value;
    control.value = state[name];
    control.addEventListener("input", () => {
      state[name] = typeof state[name] === "number" ? Number(control.value) : control.value;
      if (name === "columns" && single() && !fits()) one("#view").value = state.view = "attention";
      if (name === "view" && single() && !fits()) one("#columns").value = state.columns = "pictures";
      build();
      draw();
    });
  }
  one("#controls").addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !state.pinned) return;
    state.pinned = 0;
    draw();
  });
  const theme = one("#theme");
  const dark = () => (state.theme ? state.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const themed = () => {
    if (state.theme) root.dataset.theme = state.theme;
    theme.textContent = dark() ? "light" : "dark";
    theme.setAttribute("aria-label", `Change to the ${dark() ? "light" : "dark"} theme`);
    theme.setAttribute("aria-pressed", String(dark()));
  };
  theme.addEventListener("click", () => {
    state.theme = dark() ? "light" : "dark";
    themed();
    keep();
  });
  themed();
  addEventListener("resize", () => (build(), draw()));
  await Promise.all(images.map((image) => image.decode().catch(() => null)));
  build();
  show();
  root.dataset.ready = "yes";
})();
