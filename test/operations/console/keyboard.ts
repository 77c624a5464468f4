/** A walk through a page by the Tab key, as a person without a mouse makes it. */
import type { Page } from "playwright-core";

/** More than any page of the tests has. */
const STOPS_MOST = 600;

interface Walk {
  expected: Element[];
  reached: Element[];
}
type Walking = typeof globalThis & { walk: Walk };

/**
 * Presses Tab from the beginning to the end. Answers what is wrong: controls that are not reached, or not in the order
 * of the page; a focus that is not seen, or stands behind something. `within`: a dialog, instead of the page.
 */
export async function walkFaults(page: Page, within = "body"): Promise<readonly string[]> {
  await page.evaluate((selector) => {
    const root = document.querySelector(selector);
    const all = root?.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]") ?? [];
    const expected = [...all].filter(
      (one) =>
        one.checkVisibility({ visibilityProperty: true }) &&
        one instanceof HTMLElement &&
        one.tabIndex >= 0 &&
        !one.matches(":disabled, [type=hidden]"),
    );
    (globalThis as Walking).walk = { expected, reached: [] };
    // The walk begins here, wherever the page was clicked before.
    const mark = document.createElement("span");
    mark.tabIndex = -1;
    mark.addEventListener("blur", () => mark.remove());
    root?.prepend(mark);
    mark.focus();
  }, within);
  const faults: string[] = [];
  for (let count = 0; ; count += 1) {
    if (count > STOPS_MOST) return [...faults, "the walk has no end"];
    await page.keyboard.press("Tab");
    const stop = await page.evaluate(look, within);
    if (stop === null) break;
    faults.push(...stop);
  }
  return [...faults, ...(await page.evaluate(missed))].map((words) => `${page.url()}: ${words}`);
}

/** In the page: what is wrong with the place of the focus; null at the end of the walk. */
function look(within: string): readonly string[] | null {
  const { walk } = globalThis as Walking;
  const focused = document.activeElement;
  const latest = walk.reached.at(-1);
  // Between the end and the beginning: nothing, or a dialog that is higher than the window, which the keyboard scrolls.
  if (focused === null || focused === document.body || focused.matches(within)) return [];
  // A field of dates has a stop for each of its parts.
  if (focused === latest) return [];
  if (walk.reached.includes(focused)) return null;
  const words = focused.outerHTML.slice(0, 120);
  if (focused.closest(within) === null) return [`leaves ${within} for ${words}`];
  const faults: string[] = [];
  const isAfter = latest === undefined || (latest.compareDocumentPosition(focused) & 4) !== 0;
  if (!isAfter) faults.push(`is not in the order of the page: ${words}`);
  walk.reached.push(focused);
  const style = getComputedStyle(focused);
  if (style.outlineStyle === "none" || Number.parseFloat(style.outlineWidth) < 1) faults.push(`no outline: ${words}`);
  const { left, right, top, bottom } = focused.getBoundingClientRect();
  if (right - left < 8 || bottom - top < 8) faults.push(`too small to be seen: ${words}`);
  const [x, y] = [(Math.max(left, 0) + Math.min(right, innerWidth)) / 2, [0.1, 0.5, 0.9]] as const;
  const [from, to] = [Math.max(top, 0), Math.min(bottom, innerHeight)];
  const isSeen = [left + 4, x, right - 4].some((across) =>
    y.some((share) => {
      const shown = document.elementFromPoint(across, from + (to - from) * share);
      return shown !== null && (focused.contains(shown) || shown.contains(focused));
    }),
  );
  if (!isSeen) faults.push(`stands behind something or out of the window: ${words}`);
  return faults;
}

/** In the page: the controls at which the focus never was. */
function missed(): readonly string[] {
  const { expected, reached } = (globalThis as Walking).walk;
  const known = new Set(reached);
  return expected
    .filter((one) => one.isConnected && !known.has(one))
    .map((one) => `is not reached: ${one.outerHTML.slice(0, 120)}`);
}
