/** The files of a group, and what can be done about those that are chosen. */
import { useState } from "preact/hooks";
import { type Element, html } from "../../kit/html.ts";
import { ActionBar } from "../actions/bar.ts";
import type { Group, Item } from "../contract.ts";
import { useLiveReload } from "../live.ts";
import { FileLink, Foreign, Hint, Loaded, Scroll, State } from "../parts.ts";
import { placeWords } from "../place.ts";
import { useList } from "../query.ts";
import { hrefOf, Link } from "../router.ts";
import { TEXTS } from "../texts.ts";
import { When } from "../time.ts";
import { count } from "../words.ts";

const { inbox } = TEXTS;
const PART = 50;
const LINES = 4;

interface ItemsProps {
  readonly group: Group;
  onChanged(): void;
}

export function Items({ group, onChanged }: ItemsProps): Element {
  const items = useList<Item>("/attention/items", "items", { group: group.key, limit: PART });
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  useLiveReload(["attention"], items.reload);
  const changed = () => {
    setChosen(new Set());
    items.reload();
    onChanged();
  };
  const choose = (keys: readonly string[], isChosen: boolean) => {
    const next = new Set(chosen);
    for (const key of keys) next[isChosen ? "add" : "delete"](key);
    setChosen(next);
  };
  return html`<${Loaded} of=${items}>${(listed: readonly Item[]) => {
    const withActions = listed.filter(({ actions }) => actions.length > 0);
    // Of one file there is nothing to choose.
    const picked = listed.length === 1 ? listed : listed.filter(({ key }) => chosen.has(key));
    const all = withActions.length > 0 && withActions.every(({ key }) => chosen.has(key));
    const boxId = `all-${group.key}`;
    const set = (isChosen: boolean) =>
      choose(
        withActions.map(({ key }) => key),
        isChosen,
      );
    return html`
      ${
        withActions.length === 0
          ? null
          : html`<${ActionBar} items=${picked} all=${listed.length}
        onChanged=${changed} />`
      }
      <${Scroll}><table class="rows items"><caption class="hidden">${group.title}</caption>
        <thead><tr>${
          listed.length === 1
            ? null
            : html`<th scope="col" class="box">${Box({ id: boxId, words: inbox.chooseAll, checked: all, set })}
              <label class="narrow-only" for=${boxId}>${inbox.chooseAll}</label></th>`
        }<th scope="col">${inbox.columns.file}</th><th scope="col">${inbox.columns.reason}</th>
          <th scope="col">${inbox.columns.affected}</th><th scope="col">${inbox.columns.since}</th></tr></thead>
        <tbody>${listed.map((item) =>
          Row({ item, group, isAlone: listed.length === 1, isChosen: chosen.has(item.key), choose }),
        )}</tbody></table></${Scroll}>
      ${
        items.hasMore
          ? html`<p>${inbox.shown(listed.length, group.count)} <button type="button" class="plain small"
              onClick=${items.more}>${TEXTS.more}</button></p>`
          : null
      }`;
  }}</${Loaded}>`;
}

interface RowProps {
  readonly item: Item;
  readonly group: Group;
  readonly isAlone: boolean;
  readonly isChosen: boolean;
  choose(keys: readonly string[], isChosen: boolean): void;
}

function Row({ item, group, isAlone, isChosen, choose }: RowProps): Element {
  const { key, file, drop, path, trigger, state, currentPlace } = item;
  const name = path ?? drop ?? trigger ?? inbox.gateway;
  const set = (checked: boolean) => choose([key], checked);
  return html`<tr key=${key}>
    ${
      isAlone
        ? null
        : html`<td class="box">${
            item.actions.length === 0
              ? null
              : Box({ id: `choose-${key}`, words: inbox.choose(name), checked: isChosen, set })
          }</td>`
    }
    <td data-label=${inbox.columns.file}>
      ${
        path === null && drop !== null
          ? html`<${Link} to=${hrefOf(`/drops/${encodeURIComponent(drop)}`)}>
        <bdi>${drop}</bdi></${Link}>`
          : html`<${FileLink} file=${file} path=${name} />`
      }
      <span class="detail">${path === null || drop === null ? null : html`<bdi>${drop}</bdi>`}${
        trigger === null || path === null ? null : html` → <bdi>${trigger}</bdi>`
      }</span>
      ${state === null || state === group.kind ? null : html`<${State} state=${state} />`}
      ${
        currentPlace === null || currentPlace === path
          ? null
          : html`<span class="detail"><${Foreign} text=${currentPlace} most=${160} />
        </span>`
      }
    </td>
    <td data-label=${inbox.columns.reason}>${Reason({ item: withoutRepeats(item, group) })}</td>
    <td data-label=${inbox.columns.affected}>${Affected(item)}</td>
    <td data-label=${inbox.columns.since}><${When} at=${item.since} age /></td>
  </tr>`;
}

/** The group says it once. */
function withoutRepeats(item: Item, group: Group): Item {
  return {
    ...item,
    code: item.code === group.code ? null : item.code,
    hint: item.hint === group.hint ? null : item.hint,
  };
}

/** Why, where, and what helps. */
export function Reason({ item }: { readonly item: Pick<Item, "code" | "reason" | "hint" | "place"> }): Element {
  const where = placeWords(item.place);
  return html`<p class="reason"><${Foreign} text=${item.reason} />${
    item.code === null ? null : html` <code class="detail-inline">${item.code}</code>`
  }</p>
  ${where === "" ? null : html`<p class="spot"><${Foreign} text=${where} most=${240} /></p>`}
  ${item.hint === null ? null : html`<p class="detail"><${Hint} text=${item.hint} hasButtons /></p>`}`;
}

function Affected({ points, discards, rejectedByReason, targets, actions, file }: Item): Element {
  const lines = [
    ...(points === null || points.mapped === 0 ? [] : [inbox.mapped(points.mapped, points.accepted)]),
    ...(discards > 0 ? [inbox.discards(discards)] : []),
  ];
  const list = (words: readonly string[]) => html`<ul class="plain-list">
    ${words.slice(0, LINES).map((one) => html`<li><${Foreign} text=${one} most=${160} /></li>`)}
    ${words.length > LINES ? html`<li class="detail">${inbox.andMore(words.length - LINES)}</li>` : null}</ul>`;
  const isTried = file !== null && actions.includes("replay");
  return html`${lines.map((line) => html`<p>${line}</p>`)}
    ${
      rejectedByReason.length === 0
        ? null
        : list(rejectedByReason.map((one) => inbox.refused(count(one.count), one.message, one.column ?? null)))
    }
    ${targets.length === 0 ? null : list(targets.map(({ words }) => words))}
    ${
      isTried
        ? html`<p><${Link} to=${hrefOf("/playground", { file: String(file) })}>${inbox.tryIt}</${Link}></p>`
        : null
    }`;
}

interface BoxProps {
  readonly id: string;
  readonly words: string;
  readonly checked: boolean;
  set(checked: boolean): void;
}

function Box({ id, words, checked, set }: BoxProps): Element {
  const change = (event: Event) => set((event.target as HTMLInputElement).checked);
  return html`<input type="checkbox" id=${id} checked=${checked} onChange=${change} aria-label=${words} />`;
}
