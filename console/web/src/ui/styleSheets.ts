/**
 * withAdoptedStyles runs a function. If the function creates style elements, their styles are added
 * to adopted style sheets instead. The content security policy blocks the content of style
 * elements. It does not block adopted style sheets, because only the console's scripts can create
 * them.
 */
export function withAdoptedStyles<T>(real: Document, run: () => T): T {
  const create = real.createElement.bind(real);
  const replacement = (name: string, options?: ElementCreationOptions) => (name === 'style' ? styleElement(real, create) : create(name, options));
  Object.defineProperty(real, 'createElement', { value: replacement, configurable: true });
  try {
    return run();
  } finally {
    Reflect.deleteProperty(real, 'createElement'); // restore the prototype's method
  }
}

/**
 * styleElement returns an inert element. Until the element is removed, its text is in an adopted
 * style sheet.
 */
function styleElement(real: Document, create: (name: string) => HTMLElement): HTMLElement {
  const element = create('template');
  const sheet = new CSSStyleSheet();
  real.adoptedStyleSheets = [...real.adoptedStyleSheets, sheet];
  Object.defineProperty(element, 'textContent', { set: (content: string) => sheet.replaceSync(content), get: () => '' });
  const remove = () => {
    real.adoptedStyleSheets = real.adoptedStyleSheets.filter((adopted) => adopted !== sheet);
    Element.prototype.remove.call(element);
  };
  Object.defineProperty(element, 'remove', { value: remove });
  return element;
}
