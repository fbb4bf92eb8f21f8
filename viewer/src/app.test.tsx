// @vitest-environment jsdom
import { render } from "preact";
import "./navigation";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { actions } from "./actions";
import { App } from "./app";
import { keyName } from "./button";
import { Failure } from "./failure";
import * as store from "./store";
import { table } from "./strings";
import { invent } from "./testing/invent";

const page = document.createElement("div");
const settle = () => new Promise<void>((done) => setTimeout(done, 60));

beforeAll(async () => {
  document.body.append(page);
  HTMLCanvasElement.prototype.getContext = (() => null) as never;
  HTMLDialogElement.prototype.showModal ??= function (this: HTMLDialogElement) {
    this.open = true;
  };
  HTMLDialogElement.prototype.close ??= function (this: HTMLDialogElement) {
    this.open = false;
  };
  store.payload.value = invent({ runs: 2 });
  render(<App />, page);
  await settle();
});

afterAll(() => render(null, page));

describe("the page", () => {
  it("has a header, a main part, one first heading and a heading for each panel", () => {
    expect(page.querySelectorAll("header, main").length).toBe(2);
    expect(page.querySelectorAll("h1").length).toBe(1);
    const named = [...page.querySelectorAll("main section[aria-labelledby]")].map((each) => document.getElementById(each.getAttribute("aria-labelledby")!));
    expect(named.length).toBeGreaterThanOrEqual(5);
    expect(named.every((heading) => heading?.textContent)).toBe(true);
  });
  it("states in words what the picture shows", () => {
    const picture = page.querySelector("canvas.heat-matrix")!;
    expect(picture.getAttribute("role")).toBe("img");
    expect(picture.getAttribute("aria-label")).toMatch(/7 queries down, 9 keys across\. “汤姆” reads mostly “Tom”/);
  });
  it("lists every action and its key under help", async () => {
    store.help.value = true;
    await settle();
    const keys = [...page.querySelectorAll("table.keys kbd")].map((each) => each.textContent);
    expect(keys).toEqual(actions().flatMap((each) => each.keys.map(keyName)));
    const wanted = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "[", "]", ",", ".", " ", "+", "-", "0", "1", "2", "3", "c", "t", "e", "/", "Escape", "?", "x", "z", "b", "i", "r", "R", "j", "J", "U", "q", "Q"];
    expect(wanted.filter((key) => !actions().some((each) => each.keys.includes(key)))).toEqual([]);
    expect(page.querySelector("dialog")!.textContent).toContain("Attention is not explanation");
    store.help.value = false;
  });
  it("speaks the other language at once", async () => {
    store.language.value = "zh";
    await settle();
    expect(page.querySelector(".header-page")!.textContent).toContain("导出");
    expect(document.documentElement.lang).toBe("zh-Hans");
    store.language.value = "en";
    await settle();
  });
  it("takes a new example without the old one's selection", async () => {
    [store.query.value, store.key.value] = [6, 8];
    const choice = page.querySelector<HTMLSelectElement>(".header-choices select")!;
    choice.value = "1";
    choice.dispatchEvent(new Event("change", { bubbles: true }));
    await settle();
    expect([store.example.value, store.query.value, store.key.value]).toEqual([1, null, null]);
    store.example.value = 0;
  });
  it("never makes markup of what a trace holds", async () => {
    const hostile = invent();
    const text = '<img src=x onerror="window.ran=1"></script>';
    hostile.runs[0]!.name = text;
    hostile.runs[0]!.notes = [text];
    for (const example of hostile.runs[0]!.examples) {
      example.title = text;
      for (const axis of Object.values(example.axes)) if (axis.kind === "text") axis.labels = axis.pieces = axis.pieces.map(() => text);
    }
    store.payload.value = hostile;
    store.dialog.value = "about";
    await settle();
    expect(page.querySelector("h1")!.textContent).toBe(text);
    expect(page.querySelectorAll("img, script").length).toBe(0);
    store.dialog.value = null;
  });
  it("says why it cannot begin", () => {
    const empty = document.createElement("div");
    render(<Failure reason="this page has no payload" />, empty);
    expect(empty.textContent).toContain("this page has no payload");
  });
});

describe("the words of the page", () => {
  it("are all in both languages, with the same blanks", () => {
    const blanks = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map((each) => each[1]).sort();
    for (const [name, [english, chinese]] of Object.entries(table)) {
      expect(english.length * chinese.length, name).toBeGreaterThan(0);
      expect(new Set(blanks(chinese)), name).toEqual(new Set(blanks(english)));
    }
  });
});
