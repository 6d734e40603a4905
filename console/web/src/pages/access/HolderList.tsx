import { Alert, Label, LabelGroup } from '@patternfly/react-core';
import type { Holders } from '../../api/access';
import { access } from '../../text/access';

const t = access.whoCan;
const kinds = ['users', 'groups', 'accounts'] as const;

/** HolderList shows the subjects that have a permission. */
export function HolderList({ holders }: { holders: Holders }) {
  const shown = kinds.filter((kind) => holders[kind].length > 0);
  return (
    <>
      {holders.incomplete && (
        <Alert isInline component="h3" variant="warning" title={t.incomplete}>
          {holders.incomplete}
        </Alert>
      )}
      {shown.length === 0 && <p>{t.nobody}</p>}
      {shown.map((kind) => (
        <div key={kind} className="console-gap">
          <LabelGroup categoryName={t.count(t[kind], holders[kind].length)} numLabels={50}>
            {holders[kind].map((name) => (
              <Label key={name} variant="outline">
                {name}
              </Label>
            ))}
          </LabelGroup>
        </div>
      ))}
    </>
  );
}
