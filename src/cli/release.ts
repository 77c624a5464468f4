/** `headgate release` and `headgate recheck`: a person lets a held run go, or has it looked at now. */
import { loadGatewayConfig } from "../config/gateway-config.ts";
import { addCommand, type CommandFrame } from "./command.ts";
import { daemonWords, giveOrder, type SaidOptions, saidBy } from "./orders.ts";
import { print, printJson } from "./output.ts";

export function addRelease({ program, action }: CommandFrame): void {
  addCommand(
    program,
    "release <run>",
    "Pushes a held run as it is, whatever the guard found. What the service does not store shows as discarded.",
    ['headgate release 01kag3v0s9c7yq5d2e8fxh4m1n -c gateway.yaml --reason "the unit is right"'],
  )
    .requiredOption("-c, --config <file>", "configuration of the gateway")
    .option("--overwrite", "also dates that later files delivered while it was held")
    .option("--reason <words>", "why, for those who ask later")
    .option("--by <name>", "who (default: the user who runs the command)")
    .option("--json", "as JSON")
    .action(
      action((run: string, options: SaidOptions & { readonly overwrite?: boolean }) => release(run, options)),
    );
}

export function addRecheck({ program, action }: CommandFrame): void {
  addCommand(
    program,
    "recheck [runs...]",
    "Looks at held runs now (all of them when none is named), without what is remembered of the account. They are looked at by themselves, too, with growing pauses.",
    ["headgate recheck -c gateway.yaml"],
  )
    .requiredOption("-c, --config <file>", "configuration of the gateway")
    .option("--reason <words>", "why, for those who ask later")
    .option("--by <name>", "who (default: the user who runs the command)")
    .option("--json", "as JSON")
    .action(action((runs: string[], options: SaidOptions) => recheck(runs, options)));
}

async function release(
  run: string,
  options: SaidOptions & { readonly overwrite?: boolean },
): Promise<number> {
  const config = loadGatewayConfig(options.config);
  const overwrite = options.overwrite === true;
  const { answer, daemon } = await giveOrder(config, {
    order: "release",
    run,
    overwrite,
    ...saidBy(options),
  });
  if (options.json === true) printJson(answer);
  else {
    print(`released: run ${answer.run} of ${answer.file}, which was held: ${answer.was}`);
    if (daemon === null) print(daemonWords(daemon));
  }
  return 0;
}

async function recheck(runs: readonly string[], options: SaidOptions): Promise<number> {
  const config = loadGatewayConfig(options.config);
  const asked = runs.length === 0 ? {} : { runs: [...runs] };
  const { answer, daemon } = await giveOrder(config, { order: "recheck", ...asked, ...saidBy(options) });
  if (options.json === true) printJson(answer);
  else {
    const { length } = answer.runs;
    print(
      length === 0
        ? "no run is held"
        : `${length} held ${length === 1 ? "run is" : "runs are"} looked at again`,
    );
    if (daemon === null && length > 0) print(daemonWords(daemon));
  }
  return 0;
}
