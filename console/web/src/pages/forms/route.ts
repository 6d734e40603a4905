import type { KubeObject } from '../../api/types';
import { constant } from '../../app/constants';
import { text } from '../../text/en';
import { namesOf, present, type Choice, type Form, type Source, type Values } from './model';

const t = text.forms.route;

interface Service extends KubeObject {
  spec?: { ports?: { name?: string; port: number; targetPort?: string | number }[] };
}

const services = namesOf('services');

/**
 * ports returns the selected service's ports. A route's target port is the name or number of a
 * pod's port.
 */
const ports: Source = {
  ...services,
  choices: (items, values) => {
    const service = items.find(({ metadata }) => metadata.name === values.service) as Service | undefined;
    return (service?.spec?.ports ?? []).map(({ name, port, targetPort }): Choice => {
      const target = String(targetPort ?? port);
      return { value: name ?? target, label: `${port} → ${target}` };
    });
  },
};

const isSecure = ({ termination }: Values) => termination !== '';
const hasCertificate = ({ termination }: Values) => termination === 'edge' || termination === 'reencrypt';

/** wildcard begins the host name of a route for all names in a domain. */
const wildcard = /^\*\./;

function hostProblem(host: string): string | undefined {
  if (wildcard.test(host) && constant('DISABLE_WILDCARD_ROUTES') !== false) {
    return t.noWildcards;
  }
  return /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(host.replace(wildcard, '')) ? undefined : t.hostInvalid;
}

/**
 * hostOf returns a route's host. The router ignores the first part of the host name of a route for
 * all names in a domain.
 */
function hostOf({ host = '' }: Values): object {
  return wildcard.test(host) ? { host: host.replace(wildcard, 'wildcard.'), wildcardPolicy: 'Subdomain' } : present({ host });
}

/** routeForm creates a route for one service, or for two services that share the requests. */
export const routeForm: Form = {
  inputs: [
    { key: 'host', label: text.facts.hostName, help: t.hostHelp, problem: hostProblem },
    { key: 'path', label: t.path, isShown: ({ termination }) => termination !== 'passthrough', problem: (value) => (value.startsWith('/') ? undefined : t.pathInvalid) },
    { key: 'service', label: t.service, type: 'select', required: true, choices: [{ value: '', label: t.choose }], source: services },
    { key: 'port', label: t.port, type: 'select', choices: [{ value: '', label: t.anyPort }], source: ports },
    { key: 'other', label: t.other, type: 'select', choices: [{ value: '', label: text.none }], source: services, help: t.otherHelp },
    { key: 'share', label: t.share, type: 'slider', initial: '50', isShown: ({ other }) => other !== '' },
    { key: 'termination', label: text.facts.tls, type: 'select', choices: ['', 'edge', 'passthrough', 'reencrypt'].map((value) => ({ value, label: t.terminations[value] ?? value })) },
    { key: 'insecure', label: t.insecure, type: 'select', isShown: isSecure, choices: ['', 'Redirect', 'Allow'].map((value) => ({ value, label: t.insecures[value] ?? value })) },
    { key: 'certificate', label: text.forms.secret.certificate, type: 'area', isShown: hasCertificate, help: t.certificateHelp },
    { key: 'key', label: text.forms.secret.key, type: 'area', isShown: hasCertificate },
    { key: 'authority', label: t.authority, type: 'area', isShown: hasCertificate },
    { key: 'destination', label: t.destination, type: 'area', isShown: ({ termination }) => termination === 'reencrypt' },
  ],
  object: (values) => ({ apiVersion: 'route.openshift.io/v1', kind: 'Route', spec: spec(values) }),
};

/** portOf returns a route's target port, which is the name or number of a pod's port. */
export function portOf({ port = '' }: Values): object | undefined {
  return port === '' ? undefined : { targetPort: /^\d+$/.test(port) ? Number(port) : port };
}

/** tlsOf returns a route's TLS settings. It includes only the fields that the termination uses. */
export function tlsOf(values: Values): object | undefined {
  const { termination = '' } = values;
  const files = hasCertificate(values) ? { certificate: values.certificate, key: values.key, caCertificate: values.authority } : {};
  const destination = termination === 'reencrypt' ? { destinationCACertificate: values.destination } : {};
  return termination === '' ? undefined : { termination, ...present({ insecureEdgeTerminationPolicy: values.insecure, ...files, ...destination }) };
}

function spec(values: Values) {
  const share = Number(values.share);
  const split = values.other !== '';
  const [port, tls] = [portOf(values), tlsOf(values)];
  return {
    ...hostOf(values),
    ...present({ path: values.termination === 'passthrough' ? '' : values.path }),
    to: { kind: 'Service', name: values.service, ...(split ? { weight: 100 - share } : {}) },
    ...(split ? { alternateBackends: [{ kind: 'Service', name: values.other, weight: share }] } : {}),
    ...(port && { port }),
    ...(tls && { tls }),
  };
}
