"use strict";
const root = document.documentElement;
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

function speak(language) {
  root.dataset.language = language;
  root.lang = language === "zh" ? "zh-CN" : "en";
  for (const each of all("nav button")) each.setAttribute("aria-pressed", String(each.dataset.language === language));
}
for (const each of all("nav button")) each.addEventListener("click", () => speak(each.dataset.language));
speak(navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");

function choose() {
  const boxes = all("input[data-column]");
  for (const box of boxes) for (const cell of all(`#grid .c${box.dataset.column}`)) cell.hidden = !box.checked;
  const shown = boxes.filter((box) => box.checked).length;
  for (const cell of all("#grid [data-span]")) {
    cell.hidden = shown === 0;
    cell.colSpan = Math.max(1, shown);
  }
}
for (const box of all("input[data-column]")) box.addEventListener("change", choose);
choose();

function value(row, key) {
  const cell = row.querySelector(`[data-key="${key}"]`);
  if (cell === null) return null;
  if (cell.dataset.text !== undefined) return cell.dataset.text;
  return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
}
function sort(button) {
  const head = button.closest("th");
  const first = button.dataset.less === "1" ? "ascending" : "descending";
  const second = first === "ascending" ? "descending" : "ascending";
  const order = head.getAttribute("aria-sort") === first ? second : first;
  for (const each of all("#grid th[aria-sort]")) each.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", order);
  const body = document.querySelector("#grid tbody");
  const keyed = [...body.rows].map((row) => [value(row, button.dataset.sort), row]);
  const turn = order === "ascending" ? 1 : -1;
  keyed.sort(([a], [b]) => {
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    return turn * (typeof a === "string" ? a.localeCompare(b) : a - b);
  });
  body.append(...keyed.map(([, row]) => row));
}
for (const button of all("button[data-sort]")) button.addEventListener("click", () => sort(button));
root.dataset.ready = "";
