/** Begins the explorer in its page. */
import { render } from "preact";
import { html } from "../kit/html.ts";
import { App } from "./app.ts";
import "uplot/dist/uPlot.min.css";
import "./explorer.css";

const place = document.getElementById("explorer");
if (place !== null) {
  place.replaceChildren();
  render(html`<${App} />`, place);
}
