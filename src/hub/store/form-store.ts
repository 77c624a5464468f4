/** Lists, creates, changes and removes the forms of an account. */
import { readersOfFields } from "./calculated/readers.ts";
import type { Database, Steps } from "./database.ts";
import { foldedText } from "./filter-sql.ts";
import { changeForm, continueForms, type Ended, type Planned } from "./form-slices.ts";
import {
  type FieldsInUse,
  type FormFit,
  type FormStore,
  fieldIdsOf,
  type NewForm,
  namedForm,
  ownedForm,
  type StoredForm,
  withGroups,
} from "./forms.ts";
import { requireFew } from "./owned.ts";
import type { Listing } from "./store.ts";
import { Where } from "./where.ts";

const FORMS = { columns: "*", from: "form", order: "display_order, id" };

export function createFormStore(database: Database): FormStore {
  const { dialect } = database;
  const running = new Set<number>();
  const changing = async <Refused>(accountId: number, fit: FormFit, plan: () => Steps<Planned<Refused>>) => {
    running.add(accountId);
    try {
      return await changeForm(database, accountId, plan, fit);
    } finally {
      running.delete(accountId);
    }
  };
  return {
    async create(accountId, form, fit, most) {
      const ended = await changing(accountId, fit, function* (): Steps<Planned<"taken">> {
        yield* requireFew(accountId, "form", most);
        const isTaken = (yield* namedForm(dialect, accountId, form)) !== undefined;
        return isTaken ? { refused: "taken" } : { before: null, after: form };
      });
      return made(ended);
    },
    list: (accountId, { ids, names, entityTypes }, page) =>
      database.ask(function* (): Steps<Listing<StoredForm>> {
        const where = new Where(dialect)
          .equal("account_id", accountId)
          .among("id", ids)
          .among("name_key", names?.map(foldedText))
          .among("entity_type", entityTypes);
        const listed = yield* dialect.page(FORMS, where, page);
        return { rows: yield* withGroups(dialect, listed.rows), total: listed.total };
      }),
    async change(accountId, id, edit) {
      const ended = await changing(accountId, edit, function* (): Steps<Planned<"missing" | "taken" | FieldsInUse>> {
        const before = yield* ownedForm(dialect, accountId, id);
        if (before === undefined) return { refused: "missing" };
        const after = edit.change(before);
        const other = yield* namedForm(dialect, accountId, after);
        if (other !== undefined && other.id !== id) return { refused: "taken" };
        const users = yield* readersOfFields(dialect, accountId, withoutKept(before, after));
        return users.length > 0 ? { refused: { users } } : { before, after };
      });
      return made(ended);
    },
    async remove(accountId, id, fit) {
      const ended = await changing(accountId, fit, function* (): Steps<Planned<false | FieldsInUse>> {
        const before = yield* ownedForm(dialect, accountId, id);
        if (before === undefined) return { refused: false };
        const users = yield* readersOfFields(dialect, accountId, fieldIdsOf(before));
        return users.length > 0 ? { refused: { users } } : { before, after: null };
      });
      return ended !== null && "refused" in ended ? ended.refused : true;
    },
    resume: (fit, signal) => continueForms(database, fit, { signal, isOurs: (accountId) => running.has(accountId) }),
  };
}

function made<Refused>(ended: Ended<Refused>): StoredForm | Refused {
  if (ended === null) throw new Error("a form that was saved is gone");
  return "refused" in ended ? ended.refused : ended;
}

/** Ids of the fields that the next definition no longer has. */
function withoutKept(before: StoredForm, next: NewForm): readonly number[] {
  const kept = new Set(fieldIdsOf(next));
  return fieldIdsOf(before).filter((id) => !kept.has(id));
}
