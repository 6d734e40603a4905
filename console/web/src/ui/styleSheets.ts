/**
 * withAdoptedStyles runs a function whose new style elements write into adopted style sheets. The
 * content security policy blocks the content of style elements, but not such sheets, which only
 * scripts of the console can create.
 */
export function withAdoptedStyles<T>(real: Document, run: () => T): T {
  const create = real.createElement.bind(real);
  const replacement = (name: string, options?: ElementCreationOptions) => (name === 'style' ? styleElement(real, create) : create(name, options));
  Object.defineProperty(real, 'createElement', { value: replacement, configurable: true });
  try {
    return run();
  } finally {
    Reflect.deleteProperty(real, 'createElement'); // the method of the prototype
  }
}

/** styleElement returns an inert element whose text is in a sheet, until the element is removed. */
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
