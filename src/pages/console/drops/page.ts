/** The drops, and one of them: its polls, its check, the key of its server, and files that a person puts there. */
import { type Content, type Element, html } from "../../kit/html.ts";
import { Facts } from "../../kit/parts.ts";
import { ActionBar } from "../actions/bar.ts";
import type { PageProps } from "../app.ts";
import type { DropFacts } from "../contract.ts";
import { useLiveReload } from "../live.ts";
import { Foreign, Hint, Loaded, Scroll, State } from "../parts.ts";
import { useQuery } from "../query.ts";
import { hrefOf, Link } from "../router.ts";
import { TEXTS } from "../texts.ts";
import { When } from "../time.ts";
import { count, visible } from "../words.ts";
import { CheckCard } from "./check.ts";
import { HostKeyCard } from "./host-key.ts";
import { UploadCard } from "./upload.ts";

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
