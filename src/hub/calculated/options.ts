/** Section `calculated:` of `hub.yaml`: the engines that run R scripts of calculated variables. */
import { z } from "zod";
import { duration, size } from "#core/quantities.ts";
import type { CalculationEngine } from "./engines/engine.ts";

/** Engines that run R scripts. */
const R_ENGINES = ["webr", "rscript", "none"] as const;

const rscript = z.strictObject({
  path: z
    .string()
    .min(1)
    .default("Rscript")
    .describe("Program `Rscript` of the system's R, searched for in PATH unless it is a path; `Rscript` by default."),
  sandbox: z
    .string()
    .min(1)
    .default("bwrap")
    .describe("Program bubblewrap, in which scripts run without network and without writing; `bwrap` by default."),
  readable: z
    .array(z.string().startsWith("/"))
    .default([])
    .describe(
      "Folders that scripts may read in the sandbox beside /usr, such as that of an R in /opt. None by default.",
    )
    .meta({ examples: [["/opt/R"]] }),
  trusted: z
    .boolean()
    .default(false)
    .describe(
      "Runs scripts without a sandbox: each Manager of each account can then do all that the hub's own user can. " +
        "False by default.",
    ),
});

export const calculatedOptions = z.strictObject({
  engine: z
    .enum(R_ENGINES)
    .default("webr")
    .describe(
      "What runs R scripts: `webr` comes with Headgate, `rscript` is an R of the system with its packages, `none` " +
        "refuses scripts. Expressions need none of them. `webr` by default.",
    ),
  timeout: duration("60s").describe("How long one run of a script or an expression may take; 60s by default."),
  memory: size("512MB").describe(
    "Memory of one run of a script, beyond that of R itself, or of the columns of an expression; 512MB by default.",
  ),
  inputRows: z
    .int()
    .positive()
    .default(1_000_000)
    .describe("Points and periods of all inputs that one run of a formula may read; 1000000 by default."),
  outputRows: z
    .int()
    .positive()
    .default(1_000_000)
    .describe("Rows that one run of a script may give; 1000000 by default."),
  outputBytes: size("64MB").describe("Bytes of all that one run of a script gives; 64MB by default."),
  processes: z
    .int()
    .positive()
    .default(2)
    .describe("Processes that run scripts at the same time; each serves one account. 2 by default."),
  idle: duration("60s").describe("How long a process or thread without work stays; 60s by default."),
  rscript: rscript.prefault({}).describe("The engine `rscript`."),
});
export type CalculatedOptions = z.output<typeof calculatedOptions>;

/** Makes the engine of the configuration; starts no process before the first run. */
export type EngineFactory = (options: CalculatedOptions) => CalculationEngine;
