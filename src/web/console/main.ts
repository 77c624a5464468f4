/** Begins the console in its page. */
import { render } from "preact";
import type { AnswerOf } from "../../operations/api/endpoint.ts";
import type { peopleEndpoints } from "../../operations/api/people.ts";
import { html } from "../kit/html.ts";
import "uplot/dist/uPlot.min.css";
import "./console.css";

type Me = AnswerOf<typeof peopleEndpoints.me>;

const place = document.getElementById("console");
if (place !== null) {
  const answer = await fetch("/operations/me");
  const me = (await answer.json()) as Me;
  place.replaceChildren();
  render(html`<p>${me.name} (${me.role}) at ${me.gateway.name}</p>`, place);
}
