import { render } from "preact";

import { answer } from "./answer";
import { App } from "./app";
import { report } from "./data";
import { formulaValue } from "./formula";
import "./style.css";

const page = document.getElementById("page")!;
page.textContent = "";
render(<App />, page);

// For the console, and for tests: what the page would answer in a state.
Object.assign(globalThis, { rspmn: { answer, formulaValue, report } });
