/** Engines that cannot run as they are configured say what to do; one that is switched off refuses in words. */
import { expect, test } from "vitest";
import { tryREngine } from "#hub/calculated/engines/r/r-engine.ts";
import { calculatedOptions } from "#hub/calculated/options.ts";
import { messageOf, openEngine, run } from "./engines.ts";

test("rscript without its sandbox runs nothing, and names what to install or to set", async () => {
  const options = calculatedOptions.parse({ engine: "rscript", rscript: { sandbox: "/nowhere/bwrap" } });
  await expect(tryREngine(options)).rejects.toMatchObject({
    name: "ConfigError",
    code: "HG-HUB-012",
    message: expect.stringContaining("the sandbox /nowhere/bwrap for R scripts cannot be started"),
    hint: expect.stringContaining("Install bubblewrap"),
  });
});

test("an R that is not there is named by its setting", async () => {
  const rscript = { path: "/nowhere/Rscript", trusted: true };
  await expect(tryREngine(calculatedOptions.parse({ engine: "rscript", rscript }))).rejects.toMatchObject({
    name: "ConfigError",
    subject: "calculated.rscript.path",
    message: expect.stringContaining("R cannot be started by /nowhere/Rscript"),
  });
});

test("none refuses scripts, and says by which setting", async () => {
  const options = calculatedOptions.parse({ engine: "none" });
  expect(await tryREngine(options)).toContain("`calculated.engine: none`");
  const engine = openEngine("webr", { engine: "none" });
  expect(await messageOf(run(engine, "1"))).toContain("runs no R scripts");
});
