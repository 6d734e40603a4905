import { resolve, fieldOf, schemaOf, typesOf, type Lookup, type Schema, type Typed } from './schema';

/**
 * Option is a name or value that the editor can insert at a position. insert is the text to insert.
 */
export interface Option {
  label: string;
  type: string;
  description: string;
  insert: string;
}

/** Completions contains the options that can replace the text between a position and the cursor. */
export interface Completions {
  from: number;
  options: Option[];
}

/** item is the path element that stands for the items of a list. */
const item = '[]';

const keyPattern = /^( *(?:- +)*)([\w.$/-]*)$/;
const valuePattern = /^( *(?:- +)*)([^\s:#'"{[][^\s:]*): +(\S*)$/;

/** completionsAt returns the field names or the values that are possible at a position in YAML. */
export async function completionsAt(source: string, position: number, lookup: Lookup = schemaOf): Promise<Completions | undefined> {
  const start = source.lastIndexOf('\n', position - 1) + 1;
  const end = source.indexOf('\n', position);
  const before = source.slice(start, position);
  const after = source.slice(position, end < 0 ? source.length : end);
  const all = source.split('\n');
  const row = source.slice(0, start).split('\n').length - 1;
  const [first, last] = boundsOf(all, row);
  const typed = await typedOf(all.slice(first, last), lookup);
  const value = valuePattern.exec(before);
  const [, indent, word] = (value ?? keyPattern.exec(before) ?? []) as (string | undefined)[];
  if (!typed || indent === undefined || word === undefined) {
    return undefined;
  }
  const { path, siblings } = placeOf(all, row, first, last, indent);
  const schema = schemaAt(typed, path);
  if (value) {
    const typedWord = value[3] ?? '';
    return { from: position - typedWord.length, options: valuesOf(fieldOf(schema, word), typed) };
  }
  return { from: position - word.length, options: fieldsOf(schema, typed, siblings, indent.length, /^\s*:/.test(after)) };
}

/** boundsOf returns the line numbers of the document that contains a line. */
function boundsOf(lines: string[], row: number): [first: number, last: number] {
  const isSeparator = (line: string | undefined) => /^---(\s|$)/.test(line ?? '');
  let first = row;
  while (first > 0 && !isSeparator(lines[first - 1])) {
    first--;
  }
  let last = row + 1;
  while (last < lines.length && !isSeparator(lines[last])) {
    last++;
  }
  return [first, last];
}

/** typedOf returns the schema for the document in the given lines. */
async function typedOf(lines: string[], lookup: Lookup): Promise<Typed | undefined> {
  const field = (name: string) => lines.map((line) => new RegExp(`^${name}: *["']?([^\\s"'#]+)`).exec(line)?.[1]).find(Boolean);
  const [apiVersion, kind] = [field('apiVersion'), field('kind')];
  return apiVersion && kind ? lookup(apiVersion, kind) : undefined;
}

interface Token {
  column: number;
  /** key is the name of a field. If it is undefined, the token is the dash of a list item. */
  key?: string;
}

/** tokensOf returns the dashes and the key at the start of a line. */
function tokensOf(line: string): Token[] {
  const [, lead = '', key] = /^( *(?:- +)*(?:-$)?)(?:["']?([^\s:#"'{[][^:"']*)["']?:(?: |$))?/.exec(line.trimEnd()) ?? [];
  const dashes = [...lead].flatMap((character, column) => (character === '-' ? [{ column }] : []));
  return key === undefined ? dashes : [...dashes, { column: lead.length, key }];
}

/**
 * placeOf returns the path of the object that contains a line's key, and the object's other keys.
 */
function placeOf(lines: string[], row: number, first: number, last: number, indent: string): { path: string[]; siblings: Set<string> } {
  const path: string[] = [];
  const siblings = new Set<string>();
  let column = indent.length;
  let inItem = false;
  const visit = ({ column: at, key }: Token) => {
    if (key === undefined) {
      if (at < column) {
        path.unshift(item);
        column = at;
        inItem = true;
      }
    } else if (inItem ? at <= column : at < column) {
      path.unshift(key);
      column = at;
      inItem = false;
    } else if (at === column && path.length === 0) {
      siblings.add(key);
    }
  };
  tokensOf(indent + 'x').reverse().forEach(visit);
  for (let i = row - 1; i >= first; i--) {
    tokensOf(lines[i] ?? '').reverse().forEach(visit);
  }
  for (let i = row + 1; i < last; i++) {
    const [token] = tokensOf(lines[i] ?? '');
    if (token && (token.column < indent.length || (token.column === indent.length && token.key === undefined))) {
      break;
    }
    if (token?.column === indent.length && token.key !== undefined) {
      siblings.add(token.key);
    }
  }
  return { path, siblings };
}

function schemaAt({ schema, definitions }: Typed, path: string[]): Schema {
  return path.reduce((at, name) => resolve(name === item ? at.items : fieldOf(at, name), definitions), resolve(schema, definitions));
}

/** insertion returns the text that follows a field's name, depending on the field's type. */
function insertion(type: string | undefined, column: number): string {
  const line = `\n${' '.repeat(column)}`;
  return type === 'object' ? `:${line}  ` : type === 'array' ? `:${line}- ` : ': ';
}

function fieldsOf(schema: Schema, { definitions }: Typed, present: Set<string>, column: number, hasColon: boolean): Option[] {
  return Object.entries(schema.properties ?? {})
    .filter(([name]) => !present.has(name))
    .map(([name, reference]) => {
      const field = resolve(reference, definitions);
      const [type] = typesOf(field, definitions);
      return { label: name, type: type ?? '', description: field.description ?? '', insert: hasColon ? name : name + insertion(type, column) };
    });
}

function valuesOf(reference: Schema | undefined, { definitions }: Typed): Option[] {
  const field = resolve(reference, definitions);
  const values = field.enum?.filter((value) => value !== '') ?? (field.type === 'boolean' ? [true, false] : []);
  return values.map((value) => ({ label: String(value), type: '', description: '', insert: String(value) }));
}
