/** What a memory history refuses. A store that fails as a whole throws a StoreError (`db/errors.ts`). */
import { EverthreadError } from "../errors.ts";

export {
  LockTimeoutError,
  SchemaMismatchError,
  StoreClosedError,
  StoreError,
  StoreOpenError,
  StoreReadOnlyError,
} from "../db/errors.ts";

/** A change or a message of the wrong shape. `path` names the value: `records[2].created_at`. Nothing was written. */
export class InvalidRecordError extends EverthreadError {
  readonly path: string;

  constructor(path: string, problem: string) {
    super("invalid_record", `${path}: ${problem}`);
    this.path = path;
  }
}

/** The log has a change of this id already: it was added before. Nothing of the call was written. */
export class DuplicateRecordError extends EverthreadError {
  readonly id: string;

  constructor(id: string) {
    super("duplicate_record", `The log has a change with the id ${JSON.stringify(id)} already. Nothing was written.`);
    this.id = id;
  }
}
