import { beforeEach, describe, expect, it } from "vitest";
import { grid } from "./cells";
import { python } from "./export";
import { cellsInSight, quoted } from "./export/csv";
import { matches } from "./find";
import { cellTold, spoken } from "./live";
import * as store from "./store";
import { invent } from "./testing/invent";
import { adopt } from "./url";

const come = () => new Promise<void>((done) => setTimeout(done, 20));

const made = invent();

beforeEach(async () => {
  store.payload.value = made;
  adopt("");
  await come();
});

describe("the table of cells", () => {
  it("has the names of keys above, of queries in front, and every value in sight", () => {
    const text = cellsInSight(store.current.value!, grid.value!, store.queryAxis.value!, store.keyAxis.value!, [1, 2, 3, 4]);
    const lines = text.trim().split("\r\n");
    expect(lines[0]).toBe(',"Jerry","all"');
    expect(lines[1]!.startsWith('"满",')).toBe(true);
    expect(Number(lines[1]!.split(",")[2])).toBeCloseTo(grid.value!.value(1, 3)!.value, 6);
    expect(lines.length).toBe(3);
  });
  it("leaves cells empty that may not be seen", async () => {
    store.attention.value = "decoder.0.self";
    await come();
    const text = cellsInSight(store.current.value!, grid.value!, store.queryAxis.value!, store.keyAxis.value!, [0, 0, 1, 3]);
    expect(text.split("\r\n")[1]).toBe('"汤姆",1,,');
  });
  it("keeps names from being run as formulas", () => {
    expect(['=1+1', '"', "a,b", "-x"].map(quoted)).toEqual(['"\'=1+1"', '""""', '"a,b"', '"\'-x"']);
  });
});

describe("the Python of a view", () => {
  it("opens the same state, quotes and all", () => {
    store.query.value = 2;
    store.attention.value = 'a"b';
    expect(python()).toBe('regard.view(trace, state="#a=a%22b&q=2")');
    store.payload.value = invent({ runs: 2 });
    expect(python()).toContain("trace, other");
  });
});

describe("finding", () => {
  it("takes any part of a name in any case and width", () => {
    expect(matches(store.keyAxis.value, "JERRY")).toEqual([2]);
    expect(matches(store.keyAxis.value, "Ｔｏｍ")).toEqual([0]);
    expect(matches(store.queryAxis.value, "瑞")).toEqual([4]);
    expect(matches(store.queryAxis.value, "  ")).toEqual([]);
  });
});

describe("what is spoken", () => {
  it("is the cell and what its query reads most", () => {
    expect(spoken()).toBe("");
    [store.query.value, store.key.value] = [0, 2];
    expect(spoken()).toMatch(/^“汤姆” reads “Jerry”: 0\.\d+\. .*“Tom” 0\.\d+/);
  });
  it("tells a cell that may not be seen from a weight of zero", async () => {
    store.attention.value = "decoder.0.self";
    await come();
    expect(cellTold(0, 3)).toBe("“汤姆” may not see “追逐”");
  });
});
