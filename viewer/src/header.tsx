// The top of the page: which run, example, attention and head, how exact the numbers are, and the page's own settings.

import { grid } from "./cells";
import { Ask } from "./ask";
import { Button } from "./button";
import { Headline } from "./headline";
import { toExample } from "./navigation";
import { APPEARANCES, LANGUAGES, SETTING_KEYS } from "./settings";
import { Compare } from "./panels/compare";
import * as store from "./store";
import type { Appearance, Head, Language } from "./store";
import { say, type Sentence } from "./strings";

export function Header() {
  return (
    <header class="page-header">
      <Headline />
      <Ask />
      <Compare />
      <div class="header-choices" role="group" aria-label={say("toolbar")}>
        <ExampleChoice />
        <AttentionChoice />
        <OtherAttentionChoice />
        <HeadChoice />
        <span class="quiet exactness">{say(exactness())}</span>
      </div>
      <div class="header-page">
        <Button of="find" />
        <Button of="export" />
        <LanguageChoice />
        <AppearanceChoice />
        <Button of="about" face="ⓘ" />
        <Button of="help" face="?" pressed={store.help.value} />
      </div>
    </header>
  );
}

function ExampleChoice() {
  const examples = store.run.value.examples;
  if (examples.length < 2) return null;
  return (
    <span class="stepper">
      <Button of="example.back" face="‹" />
      <label>
        <span>{say("example")}</span>
        <select value={String(store.example.value)} onChange={(event) => toExample(Number(event.currentTarget.value))}>
          {examples.map((each, number) => (
            <option key={number} value={number}>
              {say("exampleOf", { number: number + 1, count: examples.length, title: each.title.slice(0, 80) })}
            </option>
          ))}
        </select>
      </label>
      <Button of="example.on" face="›" />
    </span>
  );
}

function AttentionChoice() {
  const shown = store.current.value;
  const among = store.currentExample.value.attentions;
  const two = store.payload.value.runs.length > 1;
  if (!shown || among.length < 2) return null;
  return (
    <span class="stepper">
      <Button of="layer.back" face="[" />
      <label>
        <span>{two ? say("attentionOf", { run: store.runIndex.value === 0 ? "A" : "B" }) : say("attention")}</span>
        <select value={shown.id} onChange={(event) => store.choose(event.currentTarget.value)}>
          {among.map((each) => (
            <option key={each.id} value={each.id}>
              {each.id}
            </option>
          ))}
        </select>
      </label>
      <Button of="layer.on" face="]" />
    </span>
  );
}

/** What of B is set against A's attention, where both are in sight. */
function OtherAttentionChoice() {
  const beside = store.other.value;
  if (!beside || (store.compare.value !== "difference" && store.compare.value !== "swipe")) return null;
  return (
    <label>
      <span>{say("attentionOf", { run: "B" })}</span>
      <select value={store.attentionB.value && beside.attention.id} onChange={(event) => (store.attentionB.value = event.currentTarget.value)}>
        <option value="">{say("attentionAsA", { name: store.counterpartId() })}</option>
        {beside.example.attentions.map((each) => (
          <option key={each.id} value={each.id}>
            {each.id}
          </option>
        ))}
      </select>
    </label>
  );
}

function HeadChoice() {
  const count = store.current.value?.heads ?? 0;
  if (count < 2) return null;
  const set = (text: string) => (store.head.value = (text === "mean" ? text : Number(text)) as Head);
  const shown = store.head.value !== "mean" && store.head.value >= count ? "mean" : store.head.value;
  return (
    <span class="stepper">
      <Button of="head.back" face="‹" />
      <label>
        <span>{say("head")}</span>
        <select value={String(shown)} onChange={(event) => set(event.currentTarget.value)}>
          <option value="mean">{say("headMean", { count })}</option>
          {Array.from({ length: count }, (_, head) => (
            <option key={head} value={head}>
              {say("headNumber", { head })}
            </option>
          ))}
        </select>
      </label>
      <Button of="head.on" face="›" />
    </span>
  );
}

/** How far the numbers on the page can be trusted. */
function exactness(): Sentence {
  const shown = store.current.value;
  const extent = grid.value?.extent;
  if (!shown?.recorded || extent === "nothing" || extent === "thumbnail") return "valuesNone";
  if (extent === "top") return "valuesTop";
  if (store.payload.value.tiles !== null && !shown.full[store.head.value]?.data) return "valuesServed";
  return store.frame.value === null && shown.exact[store.head.value]?.data ? "valuesExact" : "valuesAbout";
}

function LanguageChoice() {
  return (
    <label title={say("withKey", { label: say("language"), key: SETTING_KEYS.language })}>
      <span class="visually-hidden">{say("language")}</span>
      <select aria-keyshortcuts={SETTING_KEYS.language} value={store.language.value} onChange={(event) => (store.language.value = event.currentTarget.value as Language)}>
        {LANGUAGES.map(([value, name, lang]) => (
          <option key={value} value={value} lang={lang}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

function AppearanceChoice() {
  return (
    <label title={say("withKey", { label: say("appearance"), key: SETTING_KEYS.appearance })}>
      <span class="visually-hidden">{say("appearance")}</span>
      <select aria-keyshortcuts={SETTING_KEYS.appearance} value={store.appearance.value} onChange={(event) => (store.appearance.value = event.currentTarget.value as Appearance)}>
        {APPEARANCES.map(([value, label]) => (
          <option key={value} value={value}>
            {say(label)}
          </option>
        ))}
      </select>
    </label>
  );
}
