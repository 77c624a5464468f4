/** Pure-FTPd with a user database of its own. */
import { chown, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PROGRAMS } from "./installed.ts";
import { type Certificate, writeCertificate } from "./keys.ts";
import { virtualPerson } from "./people.ts";
import { makeGround, type RealServer, startReal } from "./real-server.ts";
import { run } from "./server-process.ts";

export async function startPureFtpd(tls: Certificate | null, listingMax = 20_000): Promise<RealServer> {
  const ground = await makeGround();
  const shows = join(ground, "shown");
  await mkdir(shows);
  const owner = await virtualPerson();
  await chown(shows, owner.uid, owner.gid);
  const [users, database] = [join(ground, "users"), join(ground, "users.pdb")];
  const user = [owner.username, owner.passwordHash, owner.uid, owner.gid, "", `${shows}/./`];
  await writeFile(users, `${user.join(":")}${":".repeat(12)}\n`, { mode: 0o600 });
  await run(PROGRAMS["pure-pw"], "mkdb", database, "-f", users);
  return startReal({
    ground,
    shows,
    seenAs: "/",
    owner,
    command: async (port) => ({
      program: PROGRAMS["pure-ftpd"],
      args: [
        ...["--bind", `127.0.0.1,${port}`, "--pidfile", join(ground, "pid"), "--syslogfacility", "none"],
        ...["--login", `puredb:${database}`, "--noanonymous", "--minuid", "1", "--chrooteveryone"],
        ...["--displaydotfiles", "--dontresolve", "--limitrecursion", `${listingMax}:10`],
        ...(tls === null ? [] : ["--tls", "2", "--certfile", await writeCertificate(ground, tls)]),
      ],
    }),
    settings: () => ({ kind: "ftp", ...(tls === null ? {} : { tls: "explicit", ca: tls.ca }) }),
  });
}
