// @vitest-environment jsdom
import { afterAll, beforeEach, expect, test, vi } from "vitest";

vi.resetModules(); // no other file's actions, which have these keys
const { action, pressed } = await import("./actions");

const run = vi.fn();
action({ id: "go", keys: [" ", "g", "ArrowUp"], label: "failed", run });

afterAll(() => void vi.resetModules());

beforeEach(() => {
  run.mockClear();
  document.body.replaceChildren();
});

function press(key: string, element: Element): KeyboardEvent {
  document.body.append(element);
  const event = new KeyboardEvent("keydown", { key, cancelable: true });
  Object.defineProperty(event, "target", { value: element });
  pressed(event);
  return event;
}

function input(type: string): HTMLInputElement {
  const element = document.createElement("input");
  element.type = type;
  return element;
}

test("a key runs its action, and the page does nothing else with it", () => {
  const event = press("g", document.createElement("p"));
  expect(run).toHaveBeenCalledOnce();
  expect(event.defaultPrevented).toBe(true);
});

test("Space on a button is the button's, and a letter on it the page's", () => {
  press(" ", document.createElement("button"));
  expect(run).not.toHaveBeenCalled();
  press("g", document.createElement("button"));
  expect(run).toHaveBeenCalledOnce();
});

test("a slider keeps its arrows and gives Space away; a text field keeps everything", () => {
  press("ArrowUp", input("range"));
  press("g", input("text"));
  expect(run).not.toHaveBeenCalled();
  press(" ", input("range"));
  expect(run).toHaveBeenCalledOnce();
});

test("a key belongs to one action only", () => {
  expect(() => action({ id: "other", keys: ["g"], label: "failed", run })).toThrow("the key g is go's, so it cannot be other's");
});
