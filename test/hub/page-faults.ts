import type { Page } from "playwright-core";

/** What a screen reader and a keyboard need of every page; empty when nothing is missing. */
export async function pageFaults(page: Page): Promise<readonly string[]> {
  const faults: string[] = [];
  for (const width of [1280, 320]) {
    await page.setViewportSize({ width, height: 800 });
    const found = await page.evaluate(() => {
      const out: string[] = [];
      const nameOf = (one: Element) => one.getAttribute("id") ?? one.outerHTML.slice(0, 80);
      if (document.documentElement.lang !== "en") out.push("the language is missing");
      if (document.querySelectorAll("h1").length !== 1) out.push("there is not one h1");
      if (document.querySelectorAll("main").length !== 1) out.push("there is not one main");
      if (!document.title.includes(" · ")) out.push(`title: ${document.title}`);
      for (const field of document.querySelectorAll<HTMLInputElement>("input:not([type=hidden]), select, textarea")) {
        if (field.getAttribute("aria-hidden") === "true") continue;
        if ((field.labels?.length ?? 0) === 0) out.push(`${nameOf(field)} has no label`);
        for (const id of (field.getAttribute("aria-describedby") ?? "").split(" ").filter((one) => one !== ""))
          if (document.getElementById(id) === null) out.push(`${nameOf(field)} is described by nothing: ${id}`);
      }
      const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
      for (const id of new Set(ids)) if (ids.filter((one) => one === id).length > 1) out.push(`two elements are ${id}`);
      for (const one of document.querySelectorAll("a, button"))
        if ((one.textContent ?? "").trim() === "") out.push(`${nameOf(one)} has no words`);
      const { scrollWidth, clientWidth } = document.documentElement;
      if (scrollWidth > clientWidth) out.push(`it is ${scrollWidth - clientWidth} px too wide`);
      return out;
    });
    faults.push(...found.map((words) => `${page.url()} at ${width} px: ${words}`));
  }
  return faults;
}
