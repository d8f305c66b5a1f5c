// The same questions, asked of the server that the page comes from.
import { useEffect, useState } from "preact/hooks";

import type { Answer } from "./answer";
import { report, type State, type Value } from "./data";

interface Explained {
  decision: string;
  decided: State | null;
  actions: {
    value: Value; utility: number | null; now: number | null; low: number | null;
    high: number | null; best: number | null; steps: number; supported: number;
    available: number; next: { node: number; probability: number }[]; notes: string[];
  }[];
  ties: Value[];
  places: { node: number; probability: number }[];
  averaged_over: string[];
}

function asAnswer(found: Explained): Answer {
  return {
    decision: found.decision,
    actions: found.actions.map((action, k) => ({
      value: action.value, utility: action.utility, now: action.now, low: action.low,
      high: action.high, probability: action.best, steps: action.steps,
      supported: action.supported, notes: action.notes, available: action.available, known: 1,
      delay: 0, taken: k === 0 && found.decided !== null, best: found.ties.includes(action.value),
      leads: action.next.map(({ node, probability }) => [node, probability] as [number, number]),
    })),
    places: found.places.map(({ node, probability }) => ({ node, probability })),
    leftOut: 0,
    certain: true, // its intervals are those of the state
    averagedOver: found.averaged_over,
  };
}

async function explained(state: State | null, t: number, signal: AbortSignal): Promise<Answer | null> {
  const token = new URLSearchParams(location.search).get("token");
  const response = await fetch(`${location.pathname.replace(/\/$/, "")}/explain`, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      ...(token === null ? {} : { Authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ state, t }),
    signal,
  });
  return response.ok ? asAnswer(await response.json()) : null;
}

/** What the server answers for a state; null until it has, and where there is none. */
export function useServer(state: State | null, left: number | null): Answer | null {
  const [found, setFound] = useState<{ key: string; answer: Answer | null } | null>(null);
  const t = left === null ? 0 : report.model.horizon! - left;
  const key = JSON.stringify([state, t]);
  useEffect(() => {
    if (!report.live) return;
    const stop = new AbortController();
    explained(state, t, stop.signal)
      .then((answer) => setFound({ key, answer }))
      .catch((error: Error) => {
        if (error.name !== "AbortError") setFound({ key, answer: null });
      });
    return () => stop.abort();
  }, [key]);
  return found?.key === key ? found.answer : null;
}
