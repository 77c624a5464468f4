/** Mails of a test hub, which become files. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestHub } from "../fixture.ts";
import { type ReadMail, readMail } from "../mail/mail-parts.ts";

/** Those whose subject names the alarm. */
export async function sentMails({ directory }: Pick<TestHub, "directory">, name: string): Promise<readonly ReadMail[]> {
  const folder = join(directory, "outbox");
  const files = (await readdir(folder).catch(() => [])).filter((file) => file.endsWith(".eml"));
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), "utf8")));
  return texts.map(readMail).filter(({ headers }) => headers["subject"]?.includes(name));
}
