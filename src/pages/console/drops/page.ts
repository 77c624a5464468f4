/** The drops, and one of them: its polls, its check, the key of its server, and files that a person puts there. */

import { useState } from "preact/hooks";
import { type Content, type Element, html } from "../../kit/html.ts";
import { Facts } from "../../kit/parts.ts";
import { nowMs } from "../../kit/zone.ts";
import { ActionBar } from "../actions/bar.ts";
import { post } from "../api.ts";
import type { DropFacts, Finding, HostKeys } from "../contract.ts";
import { FileField, useUpload } from "../file-field.ts";
import { useLiveReload } from "../live.ts";
import { Act, Dialog, Fault, Foreign, Hint, Loaded, type PageProps, Scroll, State } from "../parts.ts";
import { useRefusal } from "../person.ts";
import { useQuery } from "../query.ts";
import { hrefOf, Link } from "../router.ts";
import { TEXTS } from "../texts.ts";
import { When } from "../time.ts";
import { bytes, count, visible } from "../words.ts";

const STATES = { ok: "ok", warning: "warning", failed: "failed" } as const;
const { drops: words } = TEXTS;

export function DropsPage({ place }: PageProps): Element {
  const name = decodeURIComponent(place.path.split("/")[2] ?? "");
  const drops = useQuery<readonly DropFacts[]>("/drops");
  useLiveReload(["drops", "state"], drops.reload);
  const heading = drops.answer === null ? html`<h1>${TEXTS.pages.drops}</h1>` : null;
  return html`${heading}<${Loaded} of=${drops}>${(known: readonly DropFacts[]) => {
    if (name === "") return html`<h1>${TEXTS.pages.drops}</h1><${DropTable} drops=${known} />`;
    const drop = known.find((one) => one.drop === name);
    return drop === undefined
      ? html`<h1>${TEXTS.pages.drops}</h1><p>${words.unknown} <bdi>${name}</bdi></p>`
      : html`<${DropDetails} drop=${drop} onChanged=${drops.reload} />`;
  }}</${Loaded}>`;
}

function stateOf({ paused, lastError, hostKey }: DropFacts): "paused" | "trouble" | "ok" {
  if (paused !== null) return "paused";
  return lastError !== null || hostKey === "refused" ? "trouble" : "ok";
}

function DropTable({ drops }: { readonly drops: readonly DropFacts[] }): Element {
  const { columns } = words;
  if (drops.length === 0) return html`<p class="muted">${words.none}</p>`;
  return html`<${Scroll}><table class="rows drops"><caption class="hidden">${TEXTS.pages.drops}</caption>
    <thead><tr><th scope="col">${columns.drop}</th><th scope="col">${columns.state}</th>
      <th scope="col">${columns.lastPoll}</th><th scope="col">${columns.nextPoll}</th>
      <th scope="col">${columns.lastFile}</th><th scope="col" class="number">${columns.waiting}</th></tr></thead>
    <tbody>${drops.map((drop) => {
      const { drop: name, kind, address, lastFile } = drop;
      return html`<tr key=${name}><td data-label=${columns.drop}>
          <${Link} to=${hrefOf(`/drops/${encodeURIComponent(name)}`)}><bdi>${name}</bdi></${Link}>${" "}
          <span class="detail">${placeOf(kind, address)}</span></td>
        <td data-label=${columns.state}>${StateWords(drop)}</td>
        <td data-label=${columns.lastPoll}>${LastPoll(drop)}</td>
        <td data-label=${columns.nextPoll}>${NextPoll(drop)}</td>
        <td data-label=${columns.lastFile}>${LastFile(lastFile)}</td>
        <td class="number" data-label=${columns.waiting}>${count(drop.settlingCount + drop.leftCount)}</td></tr>`;
    })}</tbody></table></${Scroll}>`;
}

/** The kind stands in the address of a server already. */
function placeOf(kind: string, address: string | null): Content {
  if (address === null) return kind;
  return html`${address.startsWith(`${kind}:`) ? null : `${kind} · `}<bdi>${visible(address)}</bdi>`;
}

function StateWords(drop: DropFacts): Content {
  const { paused, lastError } = drop;
  return html`<${State} state=${stateOf(drop)} />${
    paused === null ? null : html` <span class="detail"><${Foreign} text=${paused} most=${200} /></span>`
  }${
    lastError === null
      ? null
      : html` <span class="detail"><${Foreign} text=${lastError.message} most=${200} />
    </span>`
  }`;
}

function LastPoll({ lastCompletePoll: at }: DropFacts): Content {
  return at === null ? words.never : html`<${When} at=${at} age />`;
}

function NextPoll({ nextPollAt, inProgress, paused }: DropFacts): Content {
  if (paused !== null) return "–";
  return inProgress || nextPollAt === null ? words.polling : html`<${When} at=${nextPollAt} />`;
}

function LastFile(file: DropFacts["lastFile"]): Content {
  if (file === null) return "–";
  return html`<${Link} to=${hrefOf("/files", { q: file.path })}><${Foreign} text=${file.path} most=${120} />
    </${Link}>${" "}
    <span class="detail"><${When} at=${file.at} age /></span>`;
}

interface DetailsProps {
  readonly drop: DropFacts;
  onChanged(): void;
}

function DropDetails({ drop, onChanged }: DetailsProps): Element {
  const { drop: name, kind, lastError, paused, hostKey, takesUploads } = drop;
  const item = {
    ...{ run: null, path: null, trigger: null, drop: name, kind: "drop" },
    actions: [paused === null ? ("pause" as const) : ("resume" as const)],
  };
  return html`<p class="crumbs"><${Link} to=${hrefOf("/drops")}>${TEXTS.pages.drops}</${Link}> › <bdi>${name}</bdi></p>
    <h1 class="file-name"><bdi>${name}</bdi> <${State} state=${stateOf(drop)} /></h1>
    <section class="card" aria-labelledby="polls"><h2 id="polls">${words.polls}</h2>
      ${
        lastError === null
          ? null
          : html`<div class="problem"><p><${Foreign} text=${lastError.message} />${
              lastError.code === null ? null : html` <code class="detail-inline">${lastError.code}</code>`
            }</p>${lastError.hint === null ? null : html`<p class="detail"><${Hint} text=${lastError.hint} /></p>`}
            <p class="detail">${words.failures(drop.consecutiveFailures)}</p></div>`
      }
      ${paused === null ? null : html`<p class="warn"><${Foreign} text=${paused} /></p>`}
      ${Facts({ facts: factsOf(drop) })}
      <${ActionBar} items=${[item]} all=${1} onChanged=${onChanged} />
      <p><${Link} to=${hrefOf("/files", { drop: name })}>${words.files}</${Link}></p>
    </section>
    <${CheckCard} drop=${name} />
    ${kind === "sftp" ? html`<${HostKeyCard} drop=${name} state=${hostKey} onChanged=${onChanged} />` : null}
    ${takesUploads ? html`<${UploadCard} drop=${name} />` : null}`;
}

function factsOf(drop: DropFacts): (readonly [string, Content])[] {
  const counts = (
    [
      ["settling", drop.settlingCount],
      ["left", drop.leftCount],
      ["temporary", drop.temporaryCount],
      ["overdue", drop.overdueCount],
      ["missing", drop.missingCount],
    ] as const
  ).flatMap(([name, value]) => (value === 0 ? [] : [words.counts[name](count(value))]));
  return [
    [words.kind, drop.kind],
    ...(drop.address === null ? [] : [[words.address, html`<bdi>${drop.address}</bdi>`] as const]),
    [words.columns.lastPoll, LastPoll(drop)],
    [words.columns.nextPoll, NextPoll(drop)],
    [words.columns.lastFile, LastFile(drop.lastFile)],
    [words.columns.waiting, counts.length === 0 ? words.nothing : counts.join(" · ")],
  ];
}

interface Added {
  readonly path: string;
  readonly bytes: number;
}

/** A file that a person puts into a drop, which is taken as any other. */
function UploadCard({ drop }: { readonly drop: string }): Element {
  const [added, setAdded] = useState<readonly Added[]>([]);
  const { fault, ...upload } = useUpload<Added>(`/drops/${encodeURIComponent(drop)}/files`, (one) =>
    setAdded((before) => [one, ...before]),
  );
  return html`<section class="card" aria-labelledby="upload"><h2 id="upload">${words.upload}</h2>
    <${Fault} fault=${fault} />
    <${FileField} ...${{ id: "upload-file", label: words.uploadLabel, ...upload }} />
    <div role="status"><ul class="plain-list">${added.map(
      (one) => html`<li>${words.uploaded(bytes(one.bytes))} <${Link}
        to=${hrefOf("/files", { q: one.path, drop })}><bdi>${one.path}</bdi></${Link}></li>`,
    )}</ul></div></section>`;
}

interface Checked {
  readonly atMs: number;
  readonly findings: readonly Finding[];
  /** Whether the check before found the same. */
  readonly asBefore: boolean;
}

/** The check of a drop, as `headgate check` makes it. */
function CheckCard({ drop }: { readonly drop: string }): Element {
  const [checked, setChecked] = useState<Checked | null>(null);
  const [fault, setFault] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const refusal = useRefusal();
  const check = () => {
    setBusy(true);
    setFault(null);
    post<readonly Finding[]>(`/drops/${encodeURIComponent(drop)}/check`, {})
      .then((findings) => setChecked((before) => checkedNow(findings, before)), setFault)
      .finally(() => setBusy(false));
  };
  return html`<section class="card" aria-labelledby="check"><h2 id="check">${words.check}</h2>
    <p class="hint"><${Hint} text=${words.checkHint} /></p><${Fault} fault=${fault} />
    <p><${Act} words=${words.checkNow} kind="plain" refusal=${refusal} isBusy=${isBusy} act=${check} /></p>
    <div role="status" aria-busy=${isBusy}>${isBusy ? html`<p class="muted">${words.checking}</p>` : null}
      ${
        checked === null || isBusy
          ? null
          : html`${Summary(checked)}<ul class="plain-list">${checked.findings.map(
              ({ level, about, what, hint }) => html`<li class="finding">
                <${State} state=${STATES[level]} words=${words.levels[level]} /> <b><bdi>${about}</bdi></b>${" "}
                <${Foreign} text=${what} />${
                  hint === null ? null : html`<p class="detail"><${Hint} text=${hint} /></p>`
                }</li>`,
            )}</ul>`
      }</div></section>`;
}

function checkedNow(findings: readonly Finding[], before: Checked | null): Checked {
  return { atMs: nowMs(), findings, asBefore: before !== null && gist(findings) === gist(before.findings) };
}

/** Without what differs each time where all is in order, such as how long a listing took. */
function gist(findings: readonly Finding[]): string {
  return JSON.stringify(findings.map(({ about, level, what }) => [about, level, level === "ok" ? null : what]));
}

function Summary({ atMs, findings, asBefore }: Checked): Element {
  const parts = [...new Set(findings.map(({ about }) => about))].join(", ");
  const open = findings.filter(({ level }) => level !== "ok").length;
  return html`<p><${When} at=${atMs} />: <${Foreign} text=${words.checked(parts, open)} />${
    asBefore ? ` ${words.asBefore}` : ""
  }</p>`;
}

interface KeyProps {
  readonly drop: string;
  readonly state: DropFacts["hostKey"];
  onChanged(): void;
}

/** The key of an SFTP server beside those that are trusted, and the approval of a new one. */
function HostKeyCard({ drop, state, onChanged }: KeyProps): Element {
  const [isAsked, setAsked] = useState(state === "refused");
  const path = `/drops/${encodeURIComponent(drop)}/host-key`;
  const keys = useQuery<HostKeys>(isAsked ? path : null);
  const changed = () => {
    keys.reload();
    onChanged();
  };
  return html`<section class="card" aria-labelledby="host-key"><h2 id="host-key">${words.hostKey}</h2>
    <p>${words.hostKeys[state]}</p>
    ${
      isAsked
        ? html`<${Loaded} of=${keys}>${(found: HostKeys) => html`<${Keys} ...${{ path, found }}
          onChanged=${changed} />`}</${Loaded}>`
        : html`<p><${Act} words=${words.compare} kind="plain" act=${() => setAsked(true)} /></p>`
    }</section>`;
}

interface KeysProps {
  readonly path: string;
  readonly found: HostKeys;
  onChanged(): void;
}

function Keys({ path, found, onChanged }: KeysProps): Element {
  const { known, offered } = found;
  const [isOpen, setOpen] = useState(false);
  const [fault, setFault] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const viewer = useRefusal();
  const refusal = viewer ?? (offered.isRevoked ? words.revoked : null);
  const approve = () => {
    setBusy(true);
    setFault(null);
    post<HostKeys>(path, { fingerprint: offered.fingerprint })
      .then(() => {
        setOpen(false);
        onChanged();
      }, setFault)
      .finally(() => setBusy(false));
  };
  const key = (type: string | null, fingerprint: string, by: string | null) =>
    html`<li><code class="fingerprint">${fingerprint}</code>${" "}
      <span class="detail">${[type, by].filter((one) => one !== null).join(" · ")}</span></li>`;
  return html`<div class="keys"><div><h3>${words.known}</h3>${
    known.length === 0
      ? html`<p class="muted">${words.noKnown}</p>`
      : html`<ul class="plain-list">
        ${known.map(({ type, fingerprint, trustedBy }) => key(type, fingerprint, trustedBy))}</ul>`
  }</div><div><h3>${words.offered} <${State} state=${offered.isTrusted ? "ok" : "trouble"}
      words=${offered.isTrusted ? words.trusted : words.untrusted} /></h3>
    <ul class="plain-list">${key(offered.type, offered.fingerprint, null)}</ul></div></div>
  ${
    offered.isTrusted
      ? null
      : html`<p class="warn">${words.keyWarning}</p>
        <p><${Act} words=${words.approve} kind="danger" refusal=${refusal} act=${() => setOpen(true)} /></p>`
  }
  ${
    isOpen
      ? html`<${Dialog} title=${words.approveTitle} onClose=${() => setOpen(false)}><${Fault} fault=${fault} />
          <p>${words.approveWords}</p><p><code class="fingerprint">${offered.fingerprint}</code></p>
          <div class="buttons"><${Act} words=${words.approveNow} kind="danger" isSmall=${false} isBusy=${isBusy}
            act=${approve} />
            <${Act} words=${TEXTS.actions.leave} kind="plain" isSmall=${false} act=${() => setOpen(false)} /></div>
              </${Dialog}>`
      : null
  }`;
}
