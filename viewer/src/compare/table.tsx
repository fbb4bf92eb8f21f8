// The statistics of every head in A, in B, and their difference.

import type { JSX } from "preact";
import { nameOf, shown, statistics } from "../heads/statistics";
import type { Attention } from "../payload";
import { say } from "../strings";
import { difference, largest, pairs, type Pair } from "./report";

/** More rows than this are not read. */
const MOST = 64;

export function DifferenceTable({ a, b }: { a: Attention; b: Attention }): JSX.Element {
  const told = statistics([a, b]);
  const all = pairs(a, b, told);
  const most = largest(all);
  const heads = Math.max(a.heads, b.heads);
  return (
    <>
      {most && <p>{differing(most)}</p>}
      <div class="compare-scroll" tabIndex={0} role="region" aria-label={say("compareTable")}>
        <table>
          <caption>{say("compareTable")}</caption>
          <thead>
            <tr>
              <th rowSpan={2} scope="col">
                {say("compareHead")}
              </th>
              {told.map((each) => (
                <th key={each} colSpan={3} scope="colgroup">
                  {nameOf(each)}
                </th>
              ))}
            </tr>
            <tr>{told.map((each) => ["compareA", "compareB", "compareDifference"].map((name) => <Head key={`${each} ${name}`} name={name as "compareA"} />))}</tr>
          </thead>
          <tbody>
            {Array.from({ length: Math.min(MOST, heads) }, (_, head) => (
              <tr key={head}>
                <th scope="row">{head}</th>
                {all.filter((pair) => pair.head === head).flatMap((pair) => numbers(pair))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {heads > MOST && <p>{say("compareCut", { shown: MOST, all: heads })}</p>}
    </>
  );
}

function Head({ name }: { name: "compareA" | "compareB" | "compareDifference" }): JSX.Element {
  return <th scope="col">{say(name)}</th>;
}

function numbers(pair: Pair): JSX.Element[] {
  const values = [pair.a, pair.b, difference(pair)];
  return values.map((value, at) => <td key={`${pair.statistic} ${at}`}>{value === null ? "–" : signed(value, at === 2)}</td>);
}

function signed(value: number, always: boolean): string {
  return always && value > 0 ? `+${shown(value)}` : shown(value).replace("-", "−");
}

function differing(pair: Pair): string {
  const head = say("headsHead", { head: pair.head });
  return say("compareLargest", { statistic: nameOf(pair.statistic), head, a: shown(pair.a), b: shown(pair.b) });
}
