// What is shown now.
import { signal } from "@preact/signals";

export const VIEWS = ["overview", "states", "policy", "ask", "episodes"] as const;
export type View = (typeof VIEWS)[number];
export type Theme = "auto" | "light" | "dark";

function viewOf(hash: string): View {
  const name = hash.replace(/^#/, "") as View;
  return VIEWS.includes(name) ? name : "overview";
}

export const view = signal<View>(viewOf(location.hash));
export const selected = signal<number | null>(null);
/** The steps to go that decisions are shown for; null: as many as at the start. */
export const left = signal<number | null>(null);
export const theme = signal<Theme>("auto");

window.addEventListener("hashchange", () => (view.value = viewOf(location.hash)));

theme.subscribe((name) => {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
});

/** Show a node in the graph of states. */
export function showNode(id: number): void {
  selected.value = id;
  location.hash = "states";
}

/** Whether the page is dark now. */
export function isDark(): boolean {
  return theme.value === "dark" ||
    (theme.value === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
}
