/** The command that runs R for one script: inside bubblewrap, or without it where the operator trusts the authors. */
import { join } from "node:path";
import type { CalculatedOptions } from "../../options.ts";
import { DEFAULT_PACKAGES } from "./webr-module.ts";

export interface RCommand {
  readonly program: string;
  readonly words: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/** Names in the room of a run: a folder that holds only what the run reads and writes. */
export const ROOM = { script: "run.R", input: "in", output: "out" } as const;

/** Bytes of address space that R takes before any script: libraries of linear algebra reserve more than they use. */
const R_ITSELF = 1024 * 1024 * 1024;
const SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin";
/** Place of the room inside the sandbox. */
const INSIDE = "/run/headgate";

/** All of the system that R reads; neither homes, nor the hub's own folders, nor the configuration in /etc. */
const SYSTEM = [
  "/usr",
  "/bin",
  "/sbin",
  "/lib",
  "/lib64",
  "/etc/R",
  "/etc/alternatives",
  "/etc/ld.so.cache",
  "/etc/localtime",
] as const;

export function commandOf(options: CalculatedOptions, room: string): RCommand {
  const { rscript } = options;
  const place = rscript.trusted ? room : INSIDE;
  const inner = ["/bin/sh", "-c", limitsOf(options), "sh", rscript.path, "--vanilla", join(place, ROOM.script), place];
  const environment = {
    PATH: SEARCH_PATH,
    HOME: rscript.trusted ? room : "/tmp",
    TMPDIR: rscript.trusted ? room : "/tmp",
    LANG: "C.UTF-8",
    TZ: "UTC",
    R_DEFAULT_PACKAGES: DEFAULT_PACKAGES,
    // Scripts run side by side already; threads of linear algebra would take each other's processors.
    OMP_NUM_THREADS: "1",
    OPENBLAS_NUM_THREADS: "1",
  };
  const [shell = "", ...words] = inner;
  if (rscript.trusted) return { program: shell, words, environment };
  return { program: rscript.sandbox, words: [...wallsOf(options, room), ...inner], environment };
}

function wallsOf({ rscript, memory }: CalculatedOptions, room: string): string[] {
  const readable = [...SYSTEM, ...rscript.readable].flatMap((path) => ["--ro-bind-try", path, path]);
  return [
    // Own users, processes, network and host name: nothing of the machine is seen or reached.
    ...["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"],
    ...readable,
    ...["--proc", "/proc", "--dev", "/dev", "--size", String(memory), "--tmpfs", "/tmp"],
    ...["--bind", room, INSIDE, "--chdir", "/tmp", "--"],
  ];
}

/** Limits of the kernel on R and all that it starts; `$0` and what follows is R's own command. */
function limitsOf({ memory, timeout, outputBytes }: CalculatedOptions): string {
  const blocks = Math.ceil(outputBytes / 512);
  const kibibytes = Math.ceil((memory + R_ITSELF) / 1024);
  const seconds = Math.ceil(timeout / 1000) + 1;
  return `ulimit -c 0; ulimit -f ${blocks}; ulimit -v ${kibibytes}; ulimit -t ${seconds}; exec "$@"`;
}
