import * as Plot from "@observablehq/plot";
import { useEffect, useRef, useState } from "preact/hooks";

/** A chart that is as wide as the page lets it be. `label` is read to those who cannot see it. */
export function Chart(props: {
  options: (width: number) => Plot.PlotOptions;
  label: string;
  deps: unknown[];
}) {
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    observer.observe(place.current!);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (!width) return;
    const drawn = Plot.plot({ width, marginBottom: 40, marginTop: 26, style: { background: "none" }, ...props.options(width) });
    drawn.setAttribute("role", "img");
    drawn.setAttribute("aria-label", props.label);
    place.current!.replaceChildren(drawn);
  }, [width, ...props.deps]);
  return <div class="chart" ref={place} />;
}
