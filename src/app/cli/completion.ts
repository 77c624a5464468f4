/** `headgate completion`: prints a script with which a shell completes commands, their subcommands and options. */
import type { Command } from "commander";
import { ConfigError } from "#core/errors.ts";
import type { CommandFrame } from "./command.ts";
import { print } from "./output.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;
type Shell = (typeof SHELLS)[number];

export function addCompletion({ command, program, action }: CommandFrame): void {
  command("completion", [
    "headgate completion bash > /etc/bash_completion.d/headgate",
    "source <(headgate completion zsh)",
    "headgate completion fish > ~/.config/fish/completions/headgate.fish",
  ]).action(
    action(async (shell: string) => {
      print(completionScript(shellOf(shell), program));
      return 0;
    }),
  );
}

function shellOf(name: string): Shell {
  const shell = SHELLS.find((one) => one === name);
  if (shell !== undefined) return shell;
  const message = `${name} is not a supported shell; there are ${SHELLS.join(", ")}`;
  throw new ConfigError("HG-CLI-001", { operation: "read argument", subject: "shell", message });
}

interface CompletedCommand {
  /** `mapper new`; empty for the program itself. */
  readonly path: string;
  readonly words: readonly string[];
}

/** The program and every command, with their completions. */
function completedCommands(command: Command, path = ""): readonly CompletedCommand[] {
  const inner = command.commands.filter((one) => one.name() !== "help");
  const options = command.options.flatMap(({ long }) => (long === undefined || long === null ? [] : [long]));
  const words = [...inner.map((one) => one.name()), ...options, "--help"].toSorted();
  return [{ path, words }, ...inner.flatMap((one) => completedCommands(one, `${path} ${one.name()}`.trim()))];
}

function completionScript(shell: Shell, program: Command): string {
  const commands = completedCommands(program);
  if (shell === "fish") return fishScript(commands);
  const script = bashScript(commands);
  return shell === "zsh" ? `autoload -U +X bashcompinit && bashcompinit\n${script}` : script;
}

function bashScript(commands: readonly CompletedCommand[]): string {
  const cases = commands.map(({ path, words }) => `    "${path}") words="${words.join(" ")}" ;;`);
  return `# Completion of headgate: commands and options; files otherwise.
_headgate() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" words="" word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *)
      case "$path $word" in
${commands
  .filter(({ path }) => path !== "")
  .map(({ path }) => `        "${path.includes(" ") ? path : ` ${path}`}") path="${path}" ;;`)
  .join("\n")}
      esac ;;
    esac
  done
  case "$path" in
${cases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _headgate headgate`;
}

function fishScript(commands: readonly CompletedCommand[]): string {
  const lines = commands.flatMap(({ path, words }) => {
    const seen = path.split(" ").map((word) => `__fish_seen_subcommand_from ${word}`);
    const when = path === "" ? "__fish_use_subcommand" : seen.join("; and ");
    return words.map((word) =>
      word.startsWith("--")
        ? `complete -c headgate -n '${when}' -l ${word.slice(2)}`
        : `complete -c headgate -n '${when}' -a ${word}`,
    );
  });
  return ["# Completion of headgate: commands and options; files otherwise.", ...lines].join("\n");
}
