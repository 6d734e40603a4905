import { isMap, isScalar, isSeq, LineCounter, parseAllDocuments, type Node, type YAMLMap } from 'yaml';
import { editor as t } from '../../text/editor';
import { fieldOf, requiredOf, resolve, schemaOf, typesOf, type Definitions, type Lookup, type Schema } from './schema';

/**
 * Problem describes a part of the text that the server would reject or ignore. Positions are
 * offsets.
 */
export interface Problem {
  from: number;
  to: number;
  line: number;
  message: string;
  /** isSyntax means that the text is not valid YAML or JSON. */
  isSyntax?: boolean;
}

/** maxProblems is the maximum number of problems that are reported for a text. */
const maxProblems = 100;

/**
 * problemsOf returns the syntax errors in YAML or JSON, and the parts that do not match the schemas
 * of the text's objects.
 */
export async function problemsOf(source: string, lookup: Lookup = schemaOf): Promise<Problem[]> {
  const lines = new LineCounter();
  const problems: Problem[] = [];
  const report = (from: number, to: number, message: string, isSyntax?: boolean) =>
    problems.push({ from, to: Math.max(to, from), line: lines.linePos(from).line, message, ...(isSyntax ? { isSyntax } : {}) });
  for (const document of parseAllDocuments(source, { lineCounter: lines, prettyErrors: false })) {
    document.errors.forEach(({ pos: [from, to], message }) => report(from, to, message, true));
    if (document.errors.length === 0 && document.contents) {
      await checkObject(document.contents as Node, lookup, report);
    }
  }
  return problems.slice(0, maxProblems);
}

type Report = (from: number, to: number, message: string) => void;

/** checkObject checks an object, or the objects in a List. */
async function checkObject(node: Node, lookup: Lookup, report: Report): Promise<void> {
  if (!isMap(node)) {
    return; // the import reports a missing kind
  }
  const [apiVersion, kind] = [node.get('apiVersion'), node.get('kind')];
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') {
    return;
  }
  const items = node.get('items');
  if (kind === 'List' && isSeq(items)) {
    for (const item of items.items) {
      await checkObject(item as Node, lookup, report);
    }
    return;
  }
  const typed = await lookup(apiVersion, kind);
  if (typed) {
    new Checker(typed.definitions, report).check(node, typed.schema, '');
  }
}

/** Checker compares YAML nodes with schemas. */
class Checker {
  constructor(
    private readonly definitions: Definitions,
    private readonly report: Report,
  ) {}

  check(node: unknown, reference: Schema | undefined, path: string): void {
    const schema = resolve(reference, this.definitions);
    const type = typeOf(node);
    if (type === undefined) {
      return; // null has no fields, and aliases are checked at their definition
    }
    const accepted = typesOf(schema, this.definitions);
    if (accepted.length > 0 && !accepted.includes(type) && !(type === 'integer' && accepted.includes('number'))) {
      this.at(node as Node, t.wrongType(path, accepted.map((one) => t.types[one] ?? one)));
    } else if (isMap(node)) {
      this.checkFields(node.items, schema, path);
      this.checkRequired(node, schema, path);
    } else if (isSeq(node)) {
      node.items.forEach((item, index) => this.check(item, schema.items, `${path}[${index}]`));
    } else if (isScalar(node) && schema.enum && !schema.enum.includes(node.value)) {
      this.at(node, t.wrongValue(path, schema.enum.map(String)));
    }
  }

  private checkFields(pairs: { key: unknown; value: unknown }[], schema: Schema, path: string): void {
    for (const { key, value } of pairs) {
      if (!isScalar(key) || key.value === '<<') {
        continue;
      }
      const name = String(key.value);
      const place = path === '' ? name : `${path}.${name}`;
      const field = fieldOf(schema, name);
      if (field) {
        this.check(value, field, place);
      } else {
        this.at(key, t.unknownField(place));
      }
    }
  }

  /**
   * checkRequired reports missing fields at an object's first field. It ignores the status, which
   * the server sets.
   */
  private checkRequired(node: YAMLMap, schema: Schema, path: string): void {
    if (path.split('.')[0] === 'status' || node.has('<<')) {
      return;
    }
    const first = node.items[0]?.key;
    for (const name of requiredOf(schema).filter((field) => !node.has(field))) {
      this.at(isScalar(first) ? first : node, t.missingField(path === '' ? name : `${path}.${name}`));
    }
  }

  private at(node: Node, message: string): void {
    const [from = 0, to = from] = node.range ?? [];
    this.report(from, to, message);
  }
}

/** typeOf returns a node's schema type. It returns undefined for null and for aliases. */
function typeOf(node: unknown): string | undefined {
  if (isMap(node)) {
    return 'object';
  }
  if (isSeq(node)) {
    return 'array';
  }
  const value = isScalar(node) ? node.value : null;
  switch (typeof value) {
    case 'number':
      return Number.isInteger(value) ? 'integer' : 'number';
    case 'string':
    case 'boolean':
      return typeof value;
    default:
      return undefined;
  }
}
