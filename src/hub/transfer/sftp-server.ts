/** The SFTP server: users sign in, and get a file tree. No shell, no commands, no forwarding. */
import { createServer } from "node:net";
import ssh2, {
  type AuthContext,
  type AuthenticationType,
  type KeyboardAuthContext,
  type SFTPWrapper,
  type Connection as SshConnection,
} from "ssh2";
import type { Connection } from "./connections.ts";
import { type Listening, listenOn, type ServerParts } from "./server-parts.ts";
import { SftpSession } from "./sftp-session.ts";
import type { SignedIn } from "./sign-in.ts";

// Node cannot detect this name in the CommonJS module.
const { Server } = ssh2;
const METHODS: AuthenticationType[] = ["publickey", "password", "keyboard-interactive"];
const SESSIONS_MAX = 8;

export async function startSftp(address: string, hostKeys: readonly string[], parts: ServerParts): Promise<Listening> {
  const { connections } = parts;
  const arrived = new Map<string, Connection>();
  const protocol = new Server(
    // Without compression: a small packet cannot become a large one.
    { hostKeys: [...hostKeys], ident: "headgate", algorithms: { compress: ["none"] } },
    (ssh, { ip, port }) => {
      ssh.on("error", () => undefined); // A client that disconnects is no fault here.
      const connection = arrived.get(`${ip} ${port}`);
      if (connection === undefined) ssh.end();
      else serve(ssh, connection, parts);
    },
  );
  const server = createServer({ noDelay: true }, (socket) => {
    const connection = connections.admit(socket);
    if (connection === null) return;
    const key = `${socket.remoteAddress} ${socket.remotePort}`;
    arrived.set(key, connection);
    socket.once("close", () => arrived.delete(key));
    protocol.injectSocket(socket);
  });
  return await listenOn(server, address, "`transfer.sftp.listen`");
}

function serve(ssh: SshConnection, connection: Connection, parts: ServerParts): void {
  const { log, clock, options, connections } = parts;
  const sessions = new Set<SftpSession>();
  let signedIn: Extract<SignedIn, { kind: "user" }> | null = null;
  ssh.on("authentication", (login) => {
    const decided = async () => {
      const verdict = await verdictOn(login, connection, parts);
      if (verdict.kind === "user") {
        signedIn = verdict;
        return login.accept();
      }
      if (login.method !== "none") connection.failures += 1;
      if (verdict.kind === "refused" && connection.failures < options.attempts) return login.reject(METHODS);
      login.reject([]);
      ssh.end();
    };
    decided().catch((thrown) => {
      log.error({ err: thrown }, "a sign-in to the SFTP server could not be checked");
      ssh.end();
    });
  });
  ssh.on("ready", () => {
    if (signedIn !== null && connections.enter(connection, signedIn.user)) return;
    signedIn = null;
    ssh.end();
  });
  ssh.on("session", (accept, reject) => {
    if (sessions.size >= SESSIONS_MAX) return reject();
    accept().on("sftp", (acceptSftp: () => SFTPWrapper, refuse: () => void) => {
      if (signedIn === null || sessions.size >= SESSIONS_MAX) return refuse();
      const tree = signedIn.user.treeFor("sftp");
      const nowMs = () => clock.now().epochMilliseconds;
      const session = new SftpSession({ sftp: acceptSftp(), tree, connection, log, nowMs });
      sessions.add(session);
      session.listen(() => sessions.delete(session));
    });
  });
  connection.socket.once("close", () => {
    for (const session of sessions) session.end();
  });
}

async function verdictOn(login: AuthContext, { address }: Connection, { signIn }: ServerParts): Promise<SignedIn> {
  const { username } = login;
  if (login.method === "password") return await signIn.byPassword(username, login.password, address);
  if (login.method === "keyboard-interactive") return await signIn.byPassword(username, await asked(login), address);
  if (login.method !== "publickey") return { kind: "refused" };
  const { key, blob, signature, hashAlgo } = login;
  const proof = blob === undefined || signature === undefined ? null : { signed: blob, signature, hash: hashAlgo };
  return await signIn.byKey(username, { data: key.data, proof }, address);
}

function asked(login: KeyboardAuthContext): Promise<string> {
  return new Promise((resolve) => {
    login.prompt([{ prompt: "Password: ", echo: false }], (answers) => resolve(answers[0] ?? ""));
  });
}
