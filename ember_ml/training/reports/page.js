"use strict";

const root = document.documentElement;

/** Sort key of a row: a number, a text, or null if the cell is empty. */
function keyOf(row, column) {
  const cell = row.cells[column];
  const raw = cell.dataset[root.dataset.average] ?? cell.dataset.value ?? cell.textContent.trim();
  if (raw === "" || raw === "–") return null;
  return Number.isNaN(Number(raw)) ? raw : Number(raw);
}

/** Compares numbers by value, anything else as text. */
function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

function sort(table, column, order) {
  const sign = order === "ascending" ? 1 : -1;
  const rows = Array.from(table.tBodies[0].rows, (row) => ({ row, key: keyOf(row, column) }));
  rows.sort((a, b) => {
    if (a.key === null || b.key === null) return (a.key === null) - (b.key === null);
    return sign * compare(a.key, b.key);
  });
  table.tBodies[0].append(...rows.map((each) => each.row));
  Array.from(table.tHead.rows[0].cells).forEach((head, at) => {
    head.setAttribute("aria-sort", at === column ? order : "none");
  });
}

/** Reverses the order; initially numbers are descending and texts ascending. */
function nextOrder(table, column) {
  const now = table.tHead.rows[0].cells[column].getAttribute("aria-sort");
  if (now !== "none") return now === "descending" ? "ascending" : "descending";
  const keys = Array.from(table.tBodies[0].rows, (row) => keyOf(row, column));
  return keys.some((key) => typeof key === "number") ? "descending" : "ascending";
}

for (const table of document.querySelectorAll("table.sortable")) {
  Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      sort(table, column, nextOrder(table, column));
    });
  });
}

for (const input of document.querySelectorAll("input[name=average]")) {
  input.addEventListener("change", () => {
    root.dataset.average = input.value;
    for (const head of document.querySelectorAll(".heat th:not([aria-sort=none])[aria-sort]")) {
      sort(head.closest("table"), head.cellIndex, head.getAttribute("aria-sort"));
    }
  });
}

/** Marks a box whose table continues on the right or on the left. */
function mark(box) {
  box.classList.toggle("more-right", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  box.classList.toggle("more-left", box.scrollLeft > 1);
}

const sizes = new ResizeObserver((entries) => {
  for (const entry of entries) mark(entry.target.closest(".box"));
});
for (const box of document.querySelectorAll(".box")) {
  box.addEventListener("scroll", () => mark(box), { passive: true });
  sizes.observe(box);
  sizes.observe(box.firstElementChild);
}

const pressed = new Set();
const choices = document.querySelectorAll(".legend button");
for (const choice of choices) {
  choice.addEventListener("click", () => {
    const line = choice.dataset.line;
    if (!pressed.delete(line)) pressed.add(line);
    for (const each of choices) each.setAttribute("aria-pressed", pressed.has(each.dataset.line));
    for (const each of document.querySelectorAll("figure [data-line]")) {
      each.classList.toggle("dim", pressed.size > 0 && !pressed.has(each.dataset.line));
    }
  });
}

document.getElementById("save").addEventListener("click", () => {
  const data = JSON.parse(document.getElementById("results").textContent);
  const blob = new Blob([JSON.stringify(data, null, 1) + "\n"], { type: "application/json" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = "results.json";
  link.click();
  URL.revokeObjectURL(link.href);
});
