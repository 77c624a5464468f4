/** `headgate forget`: the ledger forgets a file, so that what lies there is taken as if it were new. */
import { isAbsolute, relative, resolve, sep } from "node:path";
import { type GatewayConfig, loadGatewayConfig } from "../config/gateway-config.ts";
import { RejectedError } from "../support/errors.ts";
import { addCommand, type CommandFrame } from "./command.ts";
import { openLedgerToRead } from "./ledger-view.ts";
import { daemonWords, giveOrder, type SaidOptions, saidBy } from "./orders.ts";
import { print, printJson } from "./output.ts";

interface ForgetOptions extends SaidOptions {
  readonly drop?: string;
}

export function addForget({ program, action }: CommandFrame): void {
  addCommand(
    program,
    "forget <path>",
    "The ledger forgets every version of a file, so that what lies at its drop is taken as if it were new. Refused while a run of it is under way.",
    ["headgate forget 2026/meters_2026-03.csv -c gateway.yaml --drop field"],
  )
    .requiredOption("-c, --config <file>", "configuration of the gateway")
    .option("--drop <name>", "its drop, where several have such a path")
    .option("--reason <words>", "why, for those who ask later")
    .option("--by <name>", "who (default: the user who runs the command)")
    .option("--json", "as JSON")
    .action(action((path: string, options: ForgetOptions) => forget(path, options)));
}

async function forget(path: string, options: ForgetOptions): Promise<number> {
  const config = loadGatewayConfig(options.config);
  const file = await findFile(path, options, config);
  const { answer, daemon } = await giveOrder(config, { order: "forget", ...file, ...saidBy(options) });
  if (options.json === true) {
    printJson(answer);
    return 0;
  }
  const { arrivals, runs, acceptedPoints, unanswered } = answer;
  print(
    `forgotten: ${file.path} at ${file.drop}, ${arrivals} ${arrivals === 1 ? "arrival" : "arrivals"}, ${runs.length} ${runs.length === 1 ? "run" : "runs"}`,
  );
  for (const run of runs) print(`  run ${run}`);
  if (acceptedPoints > 0)
    print(`${acceptedPoints} points of it had been accepted: if it still lies there, they are sent again`);
  if (unanswered > 0) print(`${unanswered} of its batches were sent and never answered`);
  if (daemon === null) print(daemonWords(daemon));
  return 0;
}

/** As the ledger has it: by the path at a drop, or by a path into the folder of a local drop. */
async function findFile(
  path: string,
  options: ForgetOptions,
  config: GatewayConfig,
): Promise<{ readonly drop: string; readonly path: string }> {
  const { ledger } = await openLedgerToRead(options.config);
  try {
    const known = await ledger.arrivalsAt(path, options.drop);
    const drops = [...new Set(known.map(({ drop }) => drop))];
    const [drop] = drops;
    if (drop !== undefined && drops.length === 1) return { drop, path };
    if (drops.length > 1)
      throw new RejectedError("HG-CLI-002", {
        operation: "forget",
        subject: path,
        message: `several drops know a file of this path: ${drops.join(", ")}`,
        hint: "Say which with --drop.",
      });
    for (const local of config.drops) {
      if (local.kind !== "local" || (options.drop !== undefined && options.drop !== local.name)) continue;
      const inside = relative(local.path, resolve(path));
      if (inside === "" || inside === ".." || inside.startsWith(`..${sep}`) || isAbsolute(inside)) continue;
      const there = inside.split(sep).join("/");
      if ((await ledger.arrivalsAt(there, local.name)).length > 0) return { drop: local.name, path: there };
    }
  } finally {
    await ledger.close();
  }
  throw new RejectedError("HG-CLI-002", {
    operation: "forget",
    subject: path,
    message: path.includes("!/")
      ? "an entry is forgotten with its container alone"
      : `the ledger knows no file of the path ${path}`,
    hint: "Name the path as `headgate runs` shows it.",
  });
}
