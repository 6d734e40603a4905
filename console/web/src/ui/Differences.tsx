import { ExpandableSection } from '@patternfly/react-core';
import { useState } from 'react';
import type { Applied } from '../api/apply';
import { comparable } from '../api/yaml';
import { tools } from '../text/tools';
import { context, diff, type Change } from './diff';

const t = tools.diff;

interface DifferencesProps {
  applied: Applied[];
  /** heading returns the heading of the changes to an object. */
  heading?: (title: string) => string;
}

/** Differences shows the changes to each object. */
export default function Differences({ applied, heading = t.change }: DifferencesProps) {
  return applied.map(({ object, before, resource }, index) => {
    const title = `${resource.kind} ${object.metadata.name}`;
    const changes = before ? diff(comparable(before), comparable(object)) : [];
    const isSame = before !== undefined && changes.every(({ kind }) => kind === ' ');
    if (!before || isSame) {
      return <p key={index}>{isSame ? t.same(title) : t.create(title)}</p>;
    }
    return <Changes key={index} heading={heading(title)} changes={changes} />;
  });
}

/** Changes shows the changed lines of an object, which the user can hide. */
function Changes({ heading, changes }: { heading: string; changes: Change[] }) {
  const [isExpanded, setIsExpanded] = useState(true);
  return (
    <ExpandableSection toggleText={heading} isExpanded={isExpanded} onToggle={(_, expanded) => setIsExpanded(expanded)}>
      <pre className="console-diff" role="group" tabIndex={0} aria-label={heading}>
        {context(changes).map((change, line) => (change ? <Line key={line} change={change} /> : <span key={line}>…{'\n'}</span>))}
      </pre>
    </ExpandableSection>
  );
}

function Line({ change: { kind, line } }: { change: Change }) {
  const content = `${kind} ${line}\n`;
  return kind === '+' ? <ins>{content}</ins> : kind === '-' ? <del>{content}</del> : <span>{content}</span>;
}
