/** The inbox: groups of one cause, and in each its files. */
import { type Content, type Element, html } from "../../kit/html.ts";
import type { Attention, Group } from "../contract.ts";
import { useLiveReload } from "../live.ts";
import { Foreign, Hint, Loaded, type PageProps, State } from "../parts.ts";
import { useQuery } from "../query.ts";
import { go, hrefOf, Link } from "../router.ts";
import { TEXTS } from "../texts.ts";
import { When } from "../time.ts";
import { count } from "../words.ts";
import { Items } from "./items.ts";

const { inbox } = TEXTS;
/** In the address: none is open, not even the only one. */
const NO_GROUP = "none";

export function InboxPage({ place }: PageProps): Element {
  const attention = useQuery<Attention>("/attention");
  useLiveReload(["attention", "state"], attention.reload);
  const kind = place.search.get("kind");
  const opened = place.search.get("group");
  return html`<h1>${TEXTS.pages.attention}</h1>
    <${Loaded} of=${attention}>${({ groups, total, isCut }: Attention) => {
      if (groups.length === 0) return html`<p class="calm">${inbox.none}</p>`;
      const shown = groups.filter((one) => kind === null || one.kind === kind);
      // A group of one cause is what the person came for.
      const open = opened ?? (shown.length === 1 ? (shown[0]?.key ?? null) : null);
      return html`<p class="lead">${inbox.total(total, isCut)}</p>${Kinds(groups, kind)}
        <div class="groups">${shown.map(
          (group) => html`<${GroupCard} key=${group.key} ...${{ group, kind }} isOpen=${group.key === open}
            onChanged=${attention.reload} />`,
        )}</div>`;
    }}</${Loaded}>`;
}

function Kinds(groups: readonly Group[], chosen: string | null): Element | null {
  const kinds = new Map<string, number>();
  for (const group of groups) kinds.set(group.kind, (kinds.get(group.kind) ?? 0) + group.count);
  if (kinds.size < 2) return null;
  const all = [...kinds.values()].reduce((sum, one) => sum + one, 0);
  const chip = (kind: string | null, words: string, of: number) =>
    html`<li><${Link} to=${hrefOf("/", { kind })} current=${kind === chosen}>${words} <span
      class="detail">${count(of)}</span></${Link}></li>`;
  return html`<nav class="chips" aria-label=${inbox.kinds}><ul>${chip(null, inbox.all, all)}
    ${[...kinds].map(([kind, of]) => chip(kind, TEXTS.states[kind] ?? kind, of))}</ul></nav>`;
}

interface GroupProps {
  readonly group: Group;
  readonly kind: string | null;
  readonly isOpen: boolean;
  onChanged(): void;
}

function GroupCard({ group, kind, isOpen, onChanged }: GroupProps): Element {
  const { key, hint, code, mapper, oldest, newest } = group;
  const title = titleOf(group);
  const toggle = () => go(hrefOf("/", { kind, group: isOpen ? NO_GROUP : key }));
  const id = `group-${key.replace(/[^\w-]/g, "_")}`;
  const where = [...group.drops, ...group.triggers].slice(0, 6).join(" · ");
  const facts: readonly Content[] = [
    ...(where === "" ? [] : [html`<bdi>${where}</bdi>`]),
    ...(mapper === null ? [] : [html`<bdi>${mapper}</bdi>`]),
    ...(code === null ? [] : [html`<code>${code}</code>`]),
    ...(oldest === null ? [] : [Times(oldest, newest)]),
  ];
  return html`<section class="group" aria-labelledby=${id}>
    <div class="group-head">
      <${State} state=${group.kind} />
      <h2 id=${id}><${Foreign} text=${title} most=${240} /></h2>
      <span class="group-count">${inbox.count(group.count)}</span>
      <button type="button" class="plain small" aria-expanded=${isOpen} onClick=${toggle}>${
        isOpen ? inbox.hide : inbox.show(group.count)
      }<span class="hidden"> ${inbox.of(title)}</span></button>
    </div>
    <p class="detail">${facts.map((fact, at) => html`${at === 0 ? null : " · "}${fact}`)}</p>
    ${hint === null ? null : html`<p class="next-move"><${Hint} text=${hint} hasButtons /></p>`}
    ${isOpen ? html`<${Items} group=${group} onChanged=${onChanged} />` : null}
  </section>`;
}

/** Names of files have nothing in common that would be a title. */
function titleOf({ kind, count: files, title }: Group): string {
  return kind === "unmatched" && files > 1 ? inbox.unmatched(files) : title;
}

function Times(oldest: string, newest: string | null): Element {
  return oldest === newest
    ? html`${inbox.since} <${When} at=${oldest} age />`
    : html`${inbox.from} <${When} at=${oldest} age /> ${inbox.to} <${When} at=${newest} age />`;
}
