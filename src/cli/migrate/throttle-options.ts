/** The options of `migrate` that say how it holds itself back. */
import type { Command } from "commander";
import { parseShare } from "../../migration/error-share.ts";
import { parseRate, type Rate } from "../../migration/rate.ts";
import { Window } from "../../migration/window.ts";
import { ConfigError } from "../../support/errors.ts";

export interface CareFlags {
  readonly concurrency?: string;
  readonly rate?: string;
  readonly between?: string;
  readonly pauseOnErrors?: string;
  readonly priority: string;
}

export interface ThrottleSettings {
  readonly concurrency: number | undefined;
  readonly rate: Rate | null;
  readonly window: Window | null;
  /** From 0 to 1. */
  readonly errorsMax: number | null;
  /** Whatever else the machine does comes first. */
  readonly isBehind: boolean;
}

const PRIORITIES = ["low", "normal"] as const;

export function addCareOptions(command: Command): Command {
  return command
    .option("--concurrency <calls>", "push calls at the same time; the configuration's unless given")
    .option("--rate <rate>", "most readings or bytes a second that are sent, such as 5000/s or 2MB/s")
    .option(
      "--between <hours>",
      "hours in which files are taken and sent, by the clock of the zone that is stated: '22:00-05:00 Europe/Paris'; it waits for them",
    )
    .option(
      "--pause-on-errors <share>",
      "take no more files when more than this share of the files needs a person, or of the readings was refused, such as 5%; looked at from ten files on",
    )
    .option(
      "--priority <which>",
      "`low`: whatever else this machine does comes first; `normal`: it takes its share",
      "low",
    );
}

export function readThrottle({
  concurrency,
  rate,
  between,
  pauseOnErrors,
  priority,
}: CareFlags): ThrottleSettings {
  return {
    concurrency: concurrency === undefined ? undefined : wholeNumber("--concurrency", concurrency),
    rate:
      rate === undefined
        ? null
        : known(parseRate(rate), "--rate", `${rate} is no rate such as 5000/s or 2MB/s`),
    window: between === undefined ? null : windowOf(between),
    errorsMax:
      pauseOnErrors === undefined
        ? null
        : known(parseShare(pauseOnErrors), "--pause-on-errors", `${pauseOnErrors} is no share such as 5%`),
    isBehind:
      known(
        PRIORITIES.find((one) => one === priority),
        "--priority",
        `${priority} is neither ${PRIORITIES.join(" nor ")}`,
      ) === "low",
  };
}

function windowOf(text: string): Window {
  try {
    return Window.parse(text);
  } catch (thrown) {
    if (thrown instanceof RangeError) throw invalidOption("--between", thrown.message);
    throw thrown;
  }
}

export function wholeNumber(option: string, text: string): number {
  const value = Number(text);
  return known(
    Number.isInteger(value) && value > 0 ? value : undefined,
    option,
    `${text} is no whole number above 0`,
  );
}

function known<Value>(value: Value | undefined, option: string, message: string): Value {
  if (value === undefined) throw invalidOption(option, message);
  return value;
}

export function invalidOption(option: string, message: string): ConfigError {
  return new ConfigError("HG-CLI-001", { operation: "read option", subject: option, message });
}
