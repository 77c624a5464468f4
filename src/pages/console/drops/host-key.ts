/** The key of an SFTP server beside those that are trusted, and the approval of a new one. */
import { useState } from "preact/hooks";
import { type Element, html } from "../../kit/html.ts";
import { post } from "../api.ts";
import type { DropFacts, HostKeys } from "../contract.ts";
import { Act, Dialog, Fault, Loaded, State } from "../parts.ts";
import { useRefusal } from "../person.ts";
import { useQuery } from "../query.ts";
import { TEXTS } from "../texts.ts";

const { drops: words } = TEXTS;

interface KeyProps {
  readonly drop: string;
  readonly state: DropFacts["hostKey"];
  onChanged(): void;
}

export function HostKeyCard({ drop, state, onChanged }: KeyProps): Element {
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
