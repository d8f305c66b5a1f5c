import { Ask } from "./ask";
import { report } from "./data";
import { Episodes } from "./episodes";
import { Overview } from "./overview";
import { Policy } from "./policy";
import { States } from "./states";
import { theme, view, type Theme, type View } from "./store";
import { horizonText, number, plural } from "./words";

const NAMES: Record<View, string> = {
  overview: "Overview",
  states: "States",
  policy: "Policy",
  ask: "Ask",
  episodes: "Episodes",
};

export function App() {
  const { model } = report;
  const views = (Object.keys(NAMES) as View[]).filter(
    (name) => name !== "episodes" || report.episodes !== null,
  );
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>Skip to the content</a>
      <header>
        <div class="heading">
          <h1>{report.title}</h1>
          <p>
            {model.kind === "rspmn" ? "Decisions over time" : "Single decisions"} for the highest
            expected {model.utility}{horizonText(report)}
            {model.loggedSteps > 0 && <>; learned from {number(model.loggedSteps)} logged{" "}
              {model.kind === "rspmn" ? "steps" : "rows"}</>}
          </p>
        </div>
        <nav aria-label="Parts of this page">
          {views.map((name) => (
            <a href={`#${name}`} aria-current={view.value === name ? "page" : undefined}>
              {NAMES[name]}
            </a>
          ))}
          <ThemeChoice />
        </nav>
      </header>
      <main id="main" tabIndex={-1}>
        {view.value === "overview" && <Overview />}
        {view.value === "states" && <States />}
        {view.value === "policy" && <Policy />}
        {view.value === "ask" && <Ask />}
        {view.value === "episodes" && report.episodes && <Episodes />}
      </main>
      <footer>
        Made by rspmn {model.version}. Values are expected sums of {model.utility}. Intervals are
        90 % intervals unless stated otherwise.
        {report.leftOut > 0 && (
          <> Of {plural(model.interfaceNodes, "interface node")}, the{" "}
            {number(report.nodes.length)} most visited are in this page.</>
        )}
      </footer>
    </>
  );
}

function skip(event: Event) {
  event.preventDefault();
  document.getElementById("main")!.focus();
}

function ThemeChoice() {
  const choose = (event: Event) => {
    theme.value = (event.currentTarget as HTMLSelectElement).value as Theme;
  };
  return (
    <label class="theme">
      <span class="hidden">Colours</span>
      <select value={theme.value} onChange={choose}>
        <option value="auto">Auto</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  );
}
