#!/usr/bin/env node
/** argv to command; start, stop, signals. */
import { runCli } from "#app/cli/program.ts";
import { armFault } from "#core/faults.ts";

const fault = process.env["HEADGATE_FAULT"];
if (fault !== undefined) armFault(fault);

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    if (stop.signal.aborted) process.exit(signal === "SIGINT" ? 130 : 143);
    stop.abort(signal);
  });
}
// A reader that went away (`headgate runs | head`) is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});

process.exitCode = await runCli(process.argv, stop.signal);

// Everything is recorded and closed by now; a thread or socket that will not end must not keep the process.
const EXIT_MS = 3_000;
setTimeout(() => process.exit(), EXIT_MS).unref();
