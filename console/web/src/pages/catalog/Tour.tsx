import { Button, Popover, Title } from '@patternfly/react-core';
import { useState } from 'react';
import { touring } from '../../app/tour';
import { tour as t } from '../../text/tour';

const nextID = 'tour-next';

/** Tour explains the parts of the catalog page one after the other. */
export default function Tour() {
  const [steps] = useState(() => t.steps.filter(({ target }) => document.querySelector(target)));
  const [index, setIndex] = useState(0);
  const step = steps[index];
  const end = () => touring.set(false);
  if (!step) {
    return null;
  }
  const isLast = index === steps.length - 1;
  return (
    <Popover
      key={step.target}
      isVisible
      triggerRef={() => document.querySelector<HTMLElement>(step.target) ?? document.body}
      position="bottom"
      aria-label={step.title}
      // PatternFly's header would be a second banner of the page.
      bodyContent={
        <>
          <Title headingLevel="h2" size="md">
            {step.title}
          </Title>
          <p>{step.body}</p>
        </>
      }
      footerContent={
        <>
          <Button id={nextID} size="sm" onClick={() => (isLast ? end() : setIndex(index + 1))}>
            {isLast ? t.end : t.next}
          </Button>{' '}
          {index > 0 && (
            <Button size="sm" variant="link" onClick={() => setIndex(index - 1)}>
              {t.back}
            </Button>
          )}
          <small>{t.progress(index + 1, steps.length)}</small>
        </>
      }
      shouldClose={end}
      hideOnOutsideClick={false}
      withFocusTrap
      elementToFocus={`#${nextID}`}
      closeBtnAriaLabel={t.close}
    />
  );
}
