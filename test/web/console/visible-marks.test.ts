import { options } from "preact";
import { expect, test } from "vitest";
import { showHiddenMarks } from "#pages/console/visible-marks.ts";
import { html } from "#pages/kit/html.ts";

test("marks that turn a text are shown in texts and in what is read out, and values stay as they are", () => {
  showHiddenMarks();
  const made = html`<input title=${"a\u202eb"} aria-label=${"\u2066c"} value=${"d\u202ee"} />`;
  expect(made).toMatchObject({ props: { title: "a‹U+202E›b", "aria-label": "‹U+2066›c", value: "d\u202ee" } });
  // As the texts of elements are made.
  const text = { type: null, props: "f\u202eg" };
  options.vnode?.(text as unknown as Parameters<NonNullable<typeof options.vnode>>[0]);
  expect(text.props).toBe("f‹U+202E›g");
});
