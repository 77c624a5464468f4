/** The options of `migrate` that limit its speed. */
import type { Command } from "commander";
import { invalidOption } from "#core/errors.ts";
import { parseShare } from "#gateway/migration/run/error-share.ts";
import { parseRate } from "#gateway/migration/run/rate.ts";
import type { ThrottleSettings } from "#gateway/migration/run/throttle.ts";
import { Window } from "#gateway/migration/run/window.ts";

export interface ThrottleFlags {
  readonly concurrency?: string;
  readonly rate?: string;
  readonly between?: string;
  readonly pauseOnErrors?: string;
  readonly priority: string;
}

const PRIORITIES = ["low", "normal"] as const;

export function addThrottleOptions(command: Command): Command {
  return command
    .option("--concurrency <calls>", "push calls at the same time; by default as configured")
    .option("--rate <rate>", "most readings or bytes a second that are sent, such as 5000/s or 2MB/s")
    .option(
      "--between <hours>",
      "hours in which files are taken and sent, in the given time zone: '22:00-05:00 Europe/Paris'; outside " +
        "of them the migration waits",
    )
    .option(
      "--pause-on-errors <share>",
      "take no more files when more than this share of the files needs a person, or of the readings was " +
        "refused, such as 5%; checked from ten files on",
    )
    .option("--priority <which>", "`low`: other work of this machine comes first; `normal`: the usual priority", "low");
}

/** `none` stands for no limit, where a migration that resumes had one. */
export function readThrottle(flags: ThrottleFlags): ThrottleSettings {
  const { priority } = flags;
  const [concurrency, rate, between, pauseOnErrors] = [
    ...[flags.concurrency, flags.rate, flags.between, flags.pauseOnErrors],
  ].map((text) => (text === "none" ? undefined : text));
  return {
    concurrency: concurrency === undefined ? undefined : wholeNumber("--concurrency", concurrency),
    rate: rate === undefined ? null : known(parseRate(rate), "--rate", `${rate} is not a rate such as 5000/s or 2MB/s`),
    window: between === undefined ? null : windowOf(between),
    errorsMax:
      pauseOnErrors === undefined
        ? null
        : known(parseShare(pauseOnErrors), "--pause-on-errors", `${pauseOnErrors} is not a share such as 5%`),
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

function wholeNumber(option: string, text: string): number {
  const value = Number(text);
  return known(
    Number.isInteger(value) && value > 0 ? value : undefined,
    option,
    `${text} is not a whole number above 0`,
  );
}

function known<Value>(value: Value | undefined, option: string, message: string): Value {
  if (value === undefined) throw invalidOption(option, message);
  return value;
}
