import { Alert, AlertActionLink, Button, List, ListItem } from '@patternfly/react-core';
import type { Problem } from '../api/schema/problems';
import { editor as t } from '../text/editor';

interface ProblemsProps {
  problems: Problem[];
  /** show moves the cursor to a problem. */
  show: (problem: Problem) => void;
  /** proceed submits the text despite the problems. */
  proceed: () => void;
}

/** maxShown is the maximum number of problems in the list. */
const maxShown = 10;

/** Problems lists a text's problems with their line numbers. */
export function Problems({ problems, show, proceed }: ProblemsProps) {
  if (problems.length === 0) {
    return null;
  }
  const canProceed = !problems.some(({ isSyntax }) => isSyntax);
  return (
    <Alert isInline component="h2" variant="danger" isLiveRegion title={t.found(problems.length)} actionLinks={canProceed && <AlertActionLink onClick={proceed}>{t.anyway}</AlertActionLink>}>
      <List isPlain>
        {problems.slice(0, maxShown).map((problem) => (
          <ListItem key={`${problem.from} ${problem.message}`}>
            <Button variant="link" isInline onClick={() => show(problem)}>
              {t.line(problem.line, problem.message)}
            </Button>
          </ListItem>
        ))}
      </List>
      {problems.length > maxShown && <p>{t.trimmed(maxShown)}</p>}
    </Alert>
  );
}
