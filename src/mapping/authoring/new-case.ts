/** Adds a case to a mapper: an input, the settings, and what the mapper makes of them now. */
import { copyFile, mkdir, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, extname, join } from "node:path";
import { stringify } from "yaml";
import { type ErrorFacts, HeadgateError, RejectedError, systemCode, wordsOf } from "#core/errors.ts";
import { type CaseOutcome, updateCase } from "./cases.ts";

export interface NewCase {
  readonly mapper: string;
  /** Of the folder in `cases/`. */
  readonly name: string;
  readonly settings: Readonly<Record<string, unknown>>;
  /** The name that the mapper gets. */
  readonly fileName: string;
  readonly rows: "strict" | "lenient";
}

/** Bytes of an input: a case should be short enough to read. */
const CASE_BYTES_MAX = 1_000_000;

/**
 * `outcome` is what the mapper makes of the input; `check` runs the case as it was written, and returns why it does not
 * pass. Returns the folder of the case and the name of its expectation. Throws `RejectedError`, and nothing is changed.
 */
export async function addCase(
  modulePath: string,
  { mapper, name, settings, fileName, rows }: NewCase,
  inputPath: string,
  outcome: Pick<CaseOutcome, "actual" | "file">,
  check: () => Promise<string | null>,
): Promise<{ readonly case: string; readonly file: string }> {
  const facts = { operation: "add case", subject: `${mapper}/${name}` };
  if (!/^mapper\.[jt]s$/.test(basename(modulePath)))
    throw new RejectedError("HG-OPS-011", {
      ...facts,
      message: `the mapper ${mapper} is a single file, which has no cases`,
      hint: `Move it to ${mapper}/mapper.ts in the same folder.`,
    });
  const { size } = await stat(inputPath);
  if (size > CASE_BYTES_MAX)
    throw new RejectedError("HG-OPS-011", {
      ...facts,
      message: `the file has ${size} bytes, and a case at most ${CASE_BYTES_MAX}`,
      hint: "Send a sample with the rows that matter.",
    });
  const folder = join(dirname(modulePath), "cases", name);
  await mkdir(dirname(folder), { recursive: true }).catch((cause: unknown) => {
    throw unwritable(cause, facts);
  });
  await mkdir(folder).catch((cause: unknown) => {
    throw systemCode(cause) === "EEXIST" ? taken(mapper, name, facts) : unwritable(cause, facts);
  });
  try {
    await copyFile(inputPath, join(folder, `input${/^\.\w{1,8}$/.exec(extname(fileName))?.[0] ?? ".txt"}`));
    const text = stringify({ ...settings, $fileName: fileName, ...(rows === "lenient" ? { $rows: rows } : {}) });
    await writeFile(join(folder, "settings.yaml"), text);
    await updateCase(modulePath, { name, ...outcome });
    const fault = await check();
    if (fault !== null)
      throw new RejectedError("HG-OPS-011", {
        ...facts,
        message: `the mapper does not give the same result again: ${fault}`,
        hint: "Its result may depend on the present time, or on tables that the case lacks.",
      });
    return { case: folder, file: outcome.file };
  } catch (thrown) {
    await rm(folder, { recursive: true, force: true });
    throw systemCode(thrown) === undefined || thrown instanceof HeadgateError ? thrown : unwritable(thrown, facts);
  }
}

type Facts = Pick<ErrorFacts, "operation" | "subject">;

function taken(mapper: string, name: string, facts: Facts): RejectedError {
  return new RejectedError("HG-OPS-011", {
    ...facts,
    message: `the mapper ${mapper} has a case ${name} already`,
    hint: "Choose another name; nothing was changed.",
  });
}

/** The user of a gateway may often read its mappers and not change them. */
function unwritable(cause: unknown, facts: Facts): RejectedError {
  return new RejectedError("HG-OPS-011", {
    ...facts,
    message: `the folder of the mapper cannot be written: ${wordsOf(cause)}`,
    hint: "Permit the user of the gateway to write there, or add the case with `headgate mapper test --update`.",
    cause,
  });
}
