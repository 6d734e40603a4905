import { Card, CardBody, CardHeader, CardTitle, Gallery } from '@patternfly/react-core';
import type { Link } from '../../app/constants';

/** Featured shows applications outside the cluster, which scripts add to the catalog. */
export function Featured({ applications }: { applications: Link[] }) {
  return (
    <Gallery hasGutter minWidths={{ default: '100%', sm: '17rem' }}>
      {applications.map(({ label, url, description }, index) => {
        const id = `featured-${index}`;
        return (
          <Card key={url} isClickable id={id}>
            <CardHeader selectableActions={{ to: url, isExternalLink: true, selectableActionId: `${id}-action`, selectableActionAriaLabelledby: `${id}-title` }}>
              <CardTitle id={`${id}-title`}>{label}</CardTitle>
            </CardHeader>
            <CardBody>{description}</CardBody>
          </Card>
        );
      })}
    </Gallery>
  );
}
