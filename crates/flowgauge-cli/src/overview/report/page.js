"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const [START, DURATION, SOURCE, SOURCE_PORT, DESTINATION, DESTINATION_PORT, PROTOCOL, APPLICATION, NAME, STATE, SENT_PACKETS,
    RECEIVED_PACKETS, SENT, RECEIVED, RTT, RETRANSMITTED, HISTORY, END, ID, OMITTED, LINES] = Array(21).keys();
  const PAGE = 200;

  const element = (name, text, className) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const octets = (value) => {
    if (value < 1000) return String(value);
    for (const unit of ["k", "M", "G", "T"]) {
      value /= 1000;
      if (value < 999.95) return value.toFixed(1) + unit;
    }
    return value.toExponential(2);
  };
  const duration = (ns) => {
    if (ns === null) return "";
    if (ns >= 1e9) return (ns / 1e9).toFixed(3) + " s";
    return ns >= 1e6 ? (ns / 1e6).toFixed(1) + " ms" : (ns / 1e3).toFixed(0) + " µs";
  };
  const time = (ns) => {
    const whole = BigInt(ns);
    const date = new Date(Number(whole / 1000000n));
    if (isNaN(date)) return ns;
    return date.toISOString().slice(data.has_dates ? 0 : 11, 23).replace("T", " ");
  };
  const end = (address, port) => port === null ? address : address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
  const columns = [
    ["Start (UTC)", (flow) => time(flow[START]), (flow) => BigInt(flow[START])],
    ["Duration", (flow) => duration(flow[DURATION]), (flow) => flow[DURATION], true],
    ["Source", (flow) => end(flow[SOURCE], flow[SOURCE_PORT])],
    ["Destination", (flow) => end(flow[DESTINATION], flow[DESTINATION_PORT])],
    ["Protocol", (flow) => flow[PROTOCOL]],
    ["Application", (flow) => flow[APPLICATION] ?? ""],
    ["Name", (flow) => flow[NAME] ?? ""],
    ["State", (flow) => flow[STATE]],
    ["Packets", (flow) => `${flow[SENT_PACKETS]} / ${flow[RECEIVED_PACKETS]}`, (flow) => flow[SENT_PACKETS] + flow[RECEIVED_PACKETS], true],
    ["Sent", (flow) => octets(flow[SENT]), (flow) => flow[SENT], true],
    ["Received", (flow) => octets(flow[RECEIVED]), (flow) => flow[RECEIVED], true],
    ["RTT", (flow) => duration(flow[RTT]), (flow) => flow[RTT] ?? -1, true],
    ["Retransmitted", (flow) => flow[RETRANSMITTED] || "", (flow) => flow[RETRANSMITTED], true],
  ];
  const head = document.querySelector("#flows thead tr");
  const body = document.querySelector("#flows tbody");
  const find = document.getElementById("find");
  const count = document.getElementById("count");
  const more = document.getElementById("more");
  const texts = data.flows.map((flow) =>
    columns.map(([, show]) => show(flow)).concat(flow[ID], flow[LINES].map((line) => line.join(" "))).join("\n").toLowerCase());
  let order = data.flows.map((_, index) => index);
  let found = order;
  let shown = 0;
  let sorted = null;
  let isDescending = false;

  const isFound = (index, words) => words.every((word) => {
    const [, name, text] = word.match(/^([a-z]+):(.+)$/) ?? [];
    const column = name && columns.find(([title]) => title.toLowerCase().split(" ")[0] === name);
    return column ? String(column[1](data.flows[index])).toLowerCase().includes(text) : texts[index].includes(word);
  });
  const details = (flow) => {
    const cell = element("td");
    cell.colSpan = columns.length;
    cell.append(element("div", `History ${flow[HISTORY] || "none"} · ended by ${flow[END]} · Community ID ${flow[ID]}`));
    const list = element("ul", undefined, "lines");
    for (const [since, protocol, text] of flow[LINES]) {
      const line = element("li");
      line.append(element("code", `+${duration(since)}  ${protocol}  ${text}`));
      list.append(line);
    }
    if (flow[OMITTED]) list.append(element("li", `${flow[OMITTED]} more transactions`, "dim"));
    cell.append(list);
    cell.append(element("code", `flowgauge sessions ${data.files} --transactions --community-id ${flow[ID]}`));
    const row = element("tr", undefined, "more");
    row.append(cell);
    return row;
  };
  const toggle = (row) => {
    const isOpen = row.classList.toggle("open");
    row.setAttribute("aria-expanded", isOpen);
    if (isOpen) row.after(details(data.flows[row.dataset.index]));
    else row.nextElementSibling.remove();
  };
  const show = () => {
    for (const index of found.slice(shown, shown + PAGE)) {
      const row = element("tr");
      row.tabIndex = 0;
      row.dataset.index = index;
      row.setAttribute("aria-expanded", false);
      for (const [title, text, , isNumber] of columns) {
        const cell = element("td", text(data.flows[index]), isNumber ? "number" : title === "Name" ? "name" : "");
        if (title === "Name") cell.title = cell.textContent;
        row.append(cell);
      }
      body.append(row);
    }
    shown = Math.min(shown + PAGE, found.length);
    count.textContent = `${found.length} of ${data.flows.length} flows` + (shown < found.length ? `, ${shown} shown` : "");
    more.hidden = shown >= found.length;
  };
  const refresh = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    found = order.filter((index) => isFound(index, words));
    body.replaceChildren();
    shown = 0;
    show();
  };
  const sort = (column) => {
    isDescending = sorted === column ? !isDescending : column[3] === true;
    sorted = column;
    const key = column[2] ?? column[1];
    const keys = data.flows.map((flow) => key(flow));
    const compare = (a, b) => keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : a - b;
    order.sort((a, b) => isDescending ? compare(b, a) : compare(a, b));
    [...head.children].forEach((cell, index) => {
      const direction = isDescending ? "descending" : "ascending";
      cell.setAttribute("aria-sort", columns[index] === column ? direction : "none");
      cell.firstChild.textContent = columns[index][0] + (columns[index] === column ? isDescending ? " ▼" : " ▲" : "");
    });
    refresh();
  };

  for (const column of columns) {
    const cell = element("th", undefined, column[3] ? "number" : "");
    cell.scope = "col";
    const button = element("button", column[0]);
    button.addEventListener("click", () => sort(column));
    cell.append(button);
    head.append(cell);
  }
  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-index]");
    if (row && !String(getSelection())) toggle(row);
  });
  const neighbor = (row, direction) => {
    do row = row[direction]; while (row && row.dataset.index === undefined);
    return row;
  };
  body.addEventListener("keydown", (event) => {
    const row = event.target.closest("tr[data-index]");
    if (!row) return;
    const next = { ArrowDown: "nextElementSibling", j: "nextElementSibling", ArrowUp: "previousElementSibling", k: "previousElementSibling" }[event.key];
    if (next) neighbor(row, next)?.focus();
    else if (event.key === "Enter" || event.key === " ") toggle(row);
    else return;
    event.preventDefault();
  });
  find.addEventListener("input", refresh);
  more.addEventListener("click", show);
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/" && event.target !== find) {
      event.preventDefault();
      find.focus();
    } else if (event.key === "Escape" && event.target === find) {
      find.value = "";
      refresh();
      body.querySelector("tr")?.focus();
    }
  });
  const theme = document.getElementById("theme");
  theme.addEventListener("click", () => {
    const root = document.documentElement;
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
  });
  for (const control of document.querySelectorAll("[data-script]")) control.hidden = false;
  refresh();
})();
