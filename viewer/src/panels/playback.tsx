// What happened in time: decoding step by step, the beam search, and training.

import "../styles/playback.css";
import { useEffect } from "preact/hooks";
import { Beams } from "../playback/beams";
import { keepTime } from "../playback/clock";
import { Film } from "../playback/film";
import { Steps } from "../playback/steps";
import { say } from "../strings";

export function Playback() {
  useEffect(() => keepTime(), []);
  return (
    <section class="playback" aria-labelledby="playback-title">
      <h2 id="playback-title">{say("playback.title")}</h2>
      <Steps />
      <Beams />
      <Film />
    </section>
  );
}
