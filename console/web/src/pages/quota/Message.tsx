import { isURL } from '../../app/constants';

/** invisible contains the elements whose content browsers do not show. */
const invisible = 'script, style, template';

/**
 * Message shows the text and the links of a message in HTML. It omits all other elements and
 * attributes, and runs no script of the message.
 */
export function Message({ html }: { html: string }) {
  const { body } = new DOMParser().parseFromString(html, 'text/html');
  body.querySelectorAll(invisible).forEach((element) => element.remove());
  return (
    <p>
      {[...body.childNodes].map((node, index) =>
        node instanceof HTMLAnchorElement && isURL(node.href) ? (
          <a key={index} href={node.href} target="_blank" rel="noreferrer">
            {node.textContent}
          </a>
        ) : (
          node.textContent
        ),
      )}
    </p>
  );
}
