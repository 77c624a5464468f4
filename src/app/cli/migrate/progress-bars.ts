/**
 * Shows the progress of a migration on a terminal: the bar of all files, the points, the reasons of waits, and the
 * bars of single files.
 */
import type { Writable } from "node:stream";
import cliProgress from "cli-progress";
import { systemClock } from "#core/clock.ts";
import { grouped } from "#core/text.ts";
import { type Amount, FILES_SHOWN, type ProgressView, type Reached } from "#gateway/migration/run/progress.ts";
import { linesView, Pace, retryWords, waitWords } from "./progress.ts";

/** A terminal, whose lines can be overwritten. */
export type Screen = Writable & { readonly columns?: number };

/** Columns of a terminal that does not report its width. */
const WIDTH_UNKNOWN = 80;
/** Characters of a line beside its name, its bar and its words. */
const BAR_EXTRAS = 11;
/** Updates a second, at most. */
const FRAMES_PER_SECOND = 5;
const SHOW_CURSOR = "\u001b[?25h";

export function barsView(total: Amount, pace: Pace, screen: Screen): ProgressView {
  const bars = new cliProgress.MultiBar(
    {
      ...{ stream: screen, fps: FRAMES_PER_SECOND, hideCursor: true, clearOnComplete: false },
      // The library would leave a half-drawn copy behind at the first Ctrl-C, after which running calls still end.
      gracefulExit: false,
      // Lines printed above the bars move them down, so unchanged bars are drawn again as well.
      forceRedraw: true,
    },
    cliProgress.Presets.shades_classic,
  );
  // Writes a frame in one piece, so that it does not flicker.
  bars.on("update-pre", () => screen.cork());
  bars.on("update-post", () => screen.uncork());
  // Also when the process is ended in the middle.
  const showCursor = () => void screen.write(SHOW_CURSOR);
  process.once("exit", showCursor);
  const { bar, text } = formats();
  screen.cork();
  const all = bars.create(Math.max(1, total.bytes), 0, { name: "", words: "", barsize: 0 }, bar);
  const counts = bars.create(1, 0, { words: "" }, text);
  const asides = bars.create(1, 0, { words: "" }, text);
  const files = Array.from({ length: FILES_SHOWN }, () =>
    bars.create(1, 0, { name: "", words: "", barsize: 0, isShown: false }, bar),
  );
  screen.uncork();
  const show = (reached: Reached, isEnd: boolean) => {
    pace.take(reached);
    const { width, nameWidth, barsize, left } = columnsOf(screen);
    const name = cell("all files", nameWidth);
    all.update(reached.bytes, { name, barsize, words: cut(pace.left(reached), left) });
    const points = `${grouped(reached.accepted)} of ${grouped(reached.mapped)} mapped points accepted`;
    const words = `${reached.files}/${total.files} files · ${points} · ${pace.rate(reached, isEnd)}`;
    counts.update(0, { words: cut(words, width - 1) });
    asides.update(0, { words: cut(asideWords(reached), width - 1) });
    for (const [index, one] of files.entries()) {
      const run = reached.runs[index];
      one.setTotal(Math.max(1, run?.points.mapped ?? 1));
      const about = cut(run === undefined ? "" : (run.waits ?? run.state), left);
      const facts = { name: cell(run?.path ?? "", nameWidth), barsize, isShown: run !== undefined };
      one.update(run?.points.accepted ?? 0, { ...facts, words: about });
    }
  };
  return {
    show: (reached) => show(reached, false),
    note: (line) => bars.log(`${line}\n`),
    end(reached) {
      screen.cork();
      for (const one of files) bars.remove(one);
      if (reached !== null) show(reached, true);
      if (reached === null || asideWords(reached) === "") bars.remove(asides);
      bars.stop();
      process.removeListener("exit", showCursor);
      screen.uncork();
    },
  };
}

function asideWords(reached: Reached): string {
  return [retryWords(reached), waitWords(reached)].filter((one) => one !== "").join(" · ");
}

/** The widths of the columns at this moment. */
function columnsOf({ columns: width = WIDTH_UNKNOWN }: Screen) {
  const nameWidth = Math.max(12, Math.min(40, Math.floor(width / 3)));
  const barsize = Math.max(10, Math.min(40, Math.floor(width / 4)));
  return { width, nameWidth, barsize, left: Math.max(0, width - nameWidth - barsize - BAR_EXTRAS) };
}

interface BarWords {
  readonly name: string;
  readonly words: string;
  readonly barsize: number;
  readonly isShown?: boolean;
}

/** The formats of a line with a bar and one without. */
function formats(): Readonly<Record<"bar" | "text", Partial<cliProgress.Options>>> {
  const bar: cliProgress.GenericFormatter = (_options, { progress }, payload) => {
    const { name, words, barsize, isShown = true } = payload as BarWords;
    if (!isShown) return "";
    const share = Math.min(1, progress);
    const full = Math.round(share * barsize);
    const percent = `${Math.floor(share * 100)}`.padStart(3);
    return `${name} [${"█".repeat(full)}${"░".repeat(barsize - full)}] ${percent} % ${words}`;
  };
  return { bar: { format: bar }, text: { format: (_options, _state, payload) => String(payload.words) } };
}

/** Cuts the beginning of a name, since its end says more. */
function cell(text: string, width: number): string {
  return (text.length > width ? `…${text.slice(1 - width)}` : text).padEnd(width);
}

function cut(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, Math.max(0, width - 1))}…` : text;
}

/** @param say Prints lines of progress; null: bars on the terminal. */
export function viewFor(say: ((line: string) => void) | null): (total: Amount) => ProgressView {
  return (total) => {
    const pace = new Pace(total, systemClock);
    return say === null ? barsView(total, pace, process.stdout) : linesView(total, pace, systemClock, say);
  };
}
