/** Begins the console in its page. */
import { render } from "preact";
import { html } from "../kit/html.ts";
import { App } from "./app.ts";
import { showHiddenMarks } from "./visible-marks.ts";
import "uplot/dist/uPlot.min.css";
import "./console.css";

const place = document.getElementById("console");
if (place !== null) {
  showHiddenMarks();
  place.replaceChildren();
  render(html`<${App} />`, place);
}
