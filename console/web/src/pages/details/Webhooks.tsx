import { Button } from '@patternfly/react-core';
import { useState } from 'react';
import { decode } from '../../api/base64';
import { config } from '../../api/config';
import { get } from '../../api/http';
import { useStore } from '../../api/store';
import type { LooseObject } from '../../api/types';
import { text } from '../../text/en';
import { Copyable } from '../../ui/Copyable';
import { Outcome } from '../../ui/Outcome';
import { useRequest } from '../../ui/useRequest';
import { webhooksOf } from './buildConfig';

const t = text.builds;

/** hiddenSecret replaces the secret in a webhook's URL. */
const hiddenSecret = '<secret>';

/** Webhooks shows the URLs that trigger builds and, on request, the secrets in the URLs. */
export function Webhooks({ object }: { object: LooseObject }) {
  const { masterURL } = useStore(config);
  const [secrets, setSecrets] = useState<Record<string, string>>();
  const { error, send } = useRequest();
  const hooks = webhooksOf(object);
  if (hooks.length === 0) {
    return <p>{text.none}</p>;
  }
  const { name, namespace = '' } = object.metadata;
  const root = `${masterURL}/apis/build.openshift.io/v1/namespaces/${namespace}/buildconfigs/${name}/webhooks`;
  const reveal = async () => {
    const revealed: Record<string, string> = {};
    for (const { secret, reference } of hooks) {
      if (reference === undefined) {
        continue;
      }
      const { data } = await get<{ data?: Record<string, string> }>(`/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets/${encodeURIComponent(reference)}`);
      revealed[secret] = decode(data?.WebHookSecretKey ?? '');
    }
    return revealed;
  };
  return (
    <>
      {hooks.map(({ type, secret, reference }, index) => {
        const value = secrets === undefined ? hiddenSecret : reference === undefined ? secret : (secrets[secret] ?? hiddenSecret);
        return (
          <div key={index}>
            <strong>{type}</strong>
            <Copyable label={t.webhook(type)}>
              {`${root}/${value}/${type.toLowerCase()}`}
            </Copyable>
          </div>
        );
      })}
      <Button variant="link" isInline onClick={() => (secrets === undefined ? send(() => reveal().then(setSecrets)) : setSecrets(undefined))}>
        {secrets === undefined ? t.revealSecrets : t.hideSecrets}
      </Button>
      <Outcome error={error} />
    </>
  );
}
