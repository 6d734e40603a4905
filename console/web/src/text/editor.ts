/** editor contains the messages about problems in the YAML editor. */
export const editor = {
  unknownField: (path: string) => `The field ${path} does not exist.`,
  missingField: (path: string) => `The field ${path} is missing.`,
  wrongType: (path: string, types: string[]) => `${path} must be ${types.join(' or ')}.`,
  wrongValue: (path: string, values: string[]) => `${path} must be one of ${values.join(', ')}.`,
  types: { object: 'an object', array: 'a list', string: 'a string', integer: 'a whole number', number: 'a number', boolean: 'true or false' } as Record<string, string>,
  found: (n: number) => (n === 1 ? 'The text has a problem' : `The text has ${n} problems`),
  line: (line: number, message: string) => `Line ${line}: ${message}`,
  anyway: 'Send it anyway',
  trimmed: (n: number) => `These are the first ${n}.`,
};
