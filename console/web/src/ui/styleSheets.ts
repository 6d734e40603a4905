/**
 * withAdoptedStyles returns a document whose new style elements write into adopted style sheets.
 * The content security policy refuses the content of style elements, but not such sheets, which
 * only scripts of the console can make.
 */
export function withAdoptedStyles(real: Document): Document {
  return new Proxy(real, {
    get(target, property) {
      if (property === 'createElement') {
        return (name: string) => (name === 'style' ? styleElement(target) : target.createElement(name));
      }
      const value = Reflect.get(target, property, target) as unknown;
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value;
    },
  });
}

/** styleElement returns an element that shows its text in a sheet, as long as it is not removed. */
function styleElement(real: Document): HTMLStyleElement {
  const element = real.createElement('style');
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
