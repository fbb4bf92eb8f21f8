import { expect, test } from "vitest";
import { actions } from "./actions";
import "./settings";
import { appearance, language } from "./store";

const run = (id: string) => actions().find((each) => each.id === id)!.run();

test("a key goes through the languages and comes back", () => {
  language.value = "en";
  run("language");
  expect(language.value).toBe("zh");
  run("language");
  expect(language.value).toBe("en");
});

test("a key goes from the system's colours to light, dark and back", () => {
  const seen = Array.from({ length: 3 }, () => (run("appearance"), appearance.value));
  expect(seen).toEqual(["light", "dark", "system"]);
});
