import * as Plot from "@observablehq/plot";
import { useEffect, useState } from "preact/hooks";

import { NodeLink } from "./actions";
import { Chart } from "./chart";
import { nodeById, report, type Episode } from "./data";
import { drawn, number, percent, plural, shown } from "./words";

type Who = "policy" | "practice";
const PAUSE = 900;
const ENDS: Record<string, string> = {
  end: "The episode ends.",
  state: "The horizon ends here.",
  cut: "The horizon ends here.",
};

export function Episodes() {
  const [who, setWho] = useState<Who>("policy");
  const [which, setWhich] = useState(0);
  const episodes = report.episodes![who];
  const episode = episodes[Math.min(which, episodes.length - 1)];
  return (
    <section aria-labelledby="about-episodes">
      <h2 id="about-episodes">Likely episodes</h2>
      <p>Simulated from the model, the most frequent first. These are not logged episodes.</p>
      <div class="tools">
        <fieldset>
          <legend class="hidden">Who decides</legend>
          {(["policy", "practice"] as Who[]).map((name) => (
            <label>
              <input
                type="radio" name="who" checked={who === name}
                onChange={() => { setWho(name); setWhich(0); }}
              />{" "}
              {name === "policy" ? "the policy" : "current practice"}
            </label>
          ))}
        </fieldset>
        <label>
          Episode{" "}
          <select value={which} onChange={(event) => setWhich(Number(event.currentTarget.value))}>
            {episodes.map((each, k) => (
              <option value={k}>
                {k + 1}: {plural(each.steps.length, "step")}, earns {number(total(each))}{each.share > 0.005 && ` (${percent(each.share)} of those drawn)`}
              </option>
            ))}
          </select>
        </label>
      </div>
      {episode && <Played key={`${who} ${which}`} episode={episode} />}
    </section>
  );
}

function total(episode: Episode): number {
  return episode.steps.reduce((sum, step) => sum + (step.earned ?? 0), 0);
}

function Played(props: { episode: Episode }) {
  const { steps, ending } = props.episode;
  const [at, setAt] = useState(0);
  const [playing, setPlaying] = useState(false);
  const last = steps.length - 1;
  useEffect(() => {
    if (!playing) return;
    if (at >= last) {
      setPlaying(false);
      return;
    }
    const timer = setTimeout(() => setAt(at + 1), PAUSE);
    return () => clearTimeout(timer);
  }, [playing, at]);
  const step = steps[at]!;
  const sums: { t: number; sum: number }[] = [];
  steps.forEach((each, t) => sums.push({ t, sum: (sums[t - 1]?.sum ?? 0) + (each.earned ?? 0) }));
  const decided = report.model.decisions.filter((name) => name in step.values);
  const state = Object.entries(step.values).filter(([name]) => !decided.includes(name));
  const recommended = step.node === null ? undefined : nodeById.get(step.node)?.decided;
  const play = () => { if (at >= last) setAt(0); setPlaying(!playing); };
  return (
    <>
      <div class="player">
        <button type="button" onClick={() => setAt(Math.max(0, at - 1))} disabled={at === 0} aria-label="Previous step">◂</button>
        <button type="button" onClick={play}>{playing ? "Pause" : "Play"}</button>
        <button type="button" onClick={() => setAt(Math.min(last, at + 1))} disabled={at === last} aria-label="Next step">▸</button>
        <input
          type="range" min={0} max={last} value={at} aria-label="Step"
          onInput={(event) => { setPlaying(false); setAt(Number(event.currentTarget.value)); }}
        />
        <span>step {at + 1} of {steps.length}</span>
      </div>
      <div class="step" aria-live="polite">
        <p class="state">
          {state.map(([name, value]) => <span><b>{name}</b> {drawn(value)}</span>)}
        </p>
        <p>
          {decided.map((name) => <>{name}: <strong>{shown(step.values[name]!)}</strong> </>)}
          – earns {number(step.earned)}, {number(sums[at]!.sum)} so far.
          {differs(recommended, step.values, decided) && (
            <> <span class="mark">At the start of an episode the policy would choose {Object.values(recommended!).map(shown).join(", ")} here.</span></>
          )}
          {at === last && <> {ENDS[ending] ?? ""}</>}
        </p>
        {step.node !== null && <p>In the graph: <NodeLink id={step.node} /></p>}
      </div>
      <Chart
        deps={[at]}
        label="Cumulative reward by step"
        options={() => ({
          height: 150,
          marginLeft: 56,
          x: { label: "step", tickFormat: "d", domain: [1, Math.max(2, steps.length)], ticks: Math.min(10, steps.length) },
          y: { label: "cumulative reward", grid: true, nice: true },
          marks: [
            Plot.ruleY([0], { strokeOpacity: 0.3 }),
            Plot.lineY(sums, { x: (each) => each.t + 1, y: "sum", stroke: "var(--quiet)", strokeWidth: 1.5, curve: "step-after" }),
            Plot.dot([sums[at]!], { x: (each) => each.t + 1, y: "sum", fill: "var(--accent)", r: 5 }),
          ],
        })}
      />
    </>
  );
}

function differs(
  recommended: Record<string, unknown> | undefined,
  values: Record<string, unknown>,
  decided: string[],
): boolean {
  return recommended !== undefined && Object.keys(recommended).length > 0 &&
    decided.some((name) => name in recommended && recommended[name] !== values[name]);
}
