/** `headgate cancel`: a run that was not delivered is given up. */
import { loadGatewayConfig } from "../config/gateway-config.ts";
import { addCommand, type CommandFrame } from "./command.ts";
import { daemonWords, giveOrder, type SaidOptions, saidBy } from "./orders.ts";
import { print, printJson } from "./output.ts";

export function addCancel({ program, action }: CommandFrame): void {
  addCommand(
    program,
    "cancel <run>",
    "Gives a run up that was not delivered. What the service has accepted of it stays; the file stays at its drop.",
    ['headgate cancel 01kag3v0s9c7yq5d2e8fxh4m1n -c gateway.yaml --reason "wrong month"'],
  )
    .requiredOption("-c, --config <file>", "configuration of the gateway")
    .option("--reason <words>", "why, for those who ask later")
    .option("--by <name>", "who (default: the user who runs the command)")
    .option("--json", "as JSON")
    .action(action((run: string, options: SaidOptions) => cancel(run, options)));
}

async function cancel(run: string, options: SaidOptions): Promise<number> {
  const config = loadGatewayConfig(options.config);
  const { answer, daemon } = await giveOrder(config, { order: "cancel", run, ...saidBy(options) });
  if (options.json === true) {
    printJson(answer);
    return 0;
  }
  print(`cancelled: run ${answer.run} of ${answer.file}, which was ${answer.was}`);
  if (answer.acceptedPoints > 0) print(`${answer.acceptedPoints} points were accepted before, and stay`);
  for (const operation of answer.unknown)
    print(`the outcome of ${operation} is not known: it was sent, and no answer came`);
  if (daemon === null) print(daemonWords(daemon));
  return 0;
}
