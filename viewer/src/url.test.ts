import { beforeEach, describe, expect, it, vi } from "vitest";
import * as store from "./store";
import { invent } from "./testing/invent";
import { adopt, fragment, write } from "./url";

const made = invent();

beforeEach(() => {
  store.payload.value = made;
  adopt("");
});

describe("the fragment", () => {
  it("is empty at first and short after a choice", () => {
    expect(fragment()).toBe("");
    [store.attention.value, store.head.value, store.query.value, store.scale.value] = ["decoder.1.cross", 3, 5, "log"];
    store.visible.value = [0, 0, 128, 96.5];
    expect(fragment()).toBe("#a=decoder.1.cross&h=3&q=5&win=0,0,128,96.5&s=log");
  });
  it("brings back every choice", () => {
    const told =
      "#c=swipe&sw=0.25&x=2&a=decoder.0.self&h=1&pin=decoder.0.self:1,decoder.1.cross:mean&q=2&k=0&r=1,4&v=table&of=scores" +
      "&win=1,2,5,6&s=linear&p=magma&top=3&hide=1&tr=1&f=2&m=sink&o=entropy.up&hf=sink.most.0.5&nz=1.5&fold=encoder:1,decoder:0" +
      "&each=1&ms=500&ord=largest:1&lang=zh&as=dark";
    adopt(told);
    expect(store.pinned.value).toEqual([{ attention: "decoder.0.self", head: 1 }, { attention: "decoder.1.cross", head: "mean" }]);
    expect(store.folds.value).toEqual({ encoder: true, decoder: false });
    expect(fragment()).toBe(told);
  });
  it("holds names with any character in them", () => {
    store.attention.value = "a&b=c#d 汉<script>";
    store.pinned.value = [{ attention: "x,y:z%", head: 0 }];
    const told = fragment();
    adopt("");
    adopt(told);
    expect(store.attention.value).toBe("a&b=c#d 汉<script>");
    expect(store.pinned.value).toEqual([{ attention: "x,y:z%", head: 0 }]);
  });
  it("passes over what makes no sense", () => {
    adopt("#h=-1&q=1e9&k=x&win=5,5,1,1&s=cubic&p=balance&v=&r=4,2&top=0&x=99&f=1.5&hide=yes&pin=:&hf=a.b.c&o=x.up&fold=x&ord=y:2&%E0%A4%A=1&&=&c");
    expect(fragment()).toBe("");
  });
  it("takes back what it leaves out", () => {
    store.query.value = 3;
    adopt("#k=1");
    expect([store.query.value, store.key.value]).toEqual([null, 1]);
  });
});

describe("writing the address", () => {
  it("goes through the history where that is allowed", () => {
    const replaceState = vi.fn();
    write({ history: { replaceState }, location: { pathname: "/p", search: "" } } as unknown as Window, "#q=1");
    expect(replaceState).toHaveBeenCalledWith(null, "", "#q=1");
  });
  it("sets the fragment in a frame that may not touch the history, and survives one that may not do that either", () => {
    const location = { pathname: "", search: "", hash: "" };
    const refused = () => {
      throw new Error("SecurityError");
    };
    write({ history: { replaceState: refused }, location } as unknown as Window, "#q=1");
    expect(location.hash).toBe("#q=1");
    const closed = { history: { replaceState: refused }, location: { pathname: "", search: "", get hash() { return refused(); } } };
    expect(() => write(closed as unknown as Window, "#q=1")).not.toThrow();
  });
});
