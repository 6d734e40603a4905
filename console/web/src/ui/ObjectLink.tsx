import { Link } from 'react-router';
import { resourceOf } from '../api/discovery';
import { useResources } from '../api/hooks';
import { linkTo } from '../app/links';

interface ObjectLinkProps {
  /** of refers to an object, as an event or an owner reference does. */
  of: { apiVersion?: string; kind: string; namespace?: string; name: string };
  /** title is the text of the link. The default is the object's kind and name. */
  title?: string;
}

/** ObjectLink links to an object, if the server serves the object's kind. */
export function ObjectLink({ of: { apiVersion = 'v1', kind, namespace, name }, title = `${kind} ${name}` }: ObjectLinkProps) {
  const resources = useResources();
  const resource = resources && resourceOf(resources, apiVersion, kind);
  return resource ? <Link to={linkTo(resource, namespace, name)}>{title}</Link> : <>{title}</>;
}
