import type { LooseObject } from '../../../api/types';
import { attach } from '../../../text/attach';
import { text } from '../../../text/en';
import { choicesOf, namesOf, type Values } from '../../forms/model';
import type { DialogProps } from '../dialogs';
import { appended } from './attachment';
import type { Edit } from './edit';
import { EditDialog } from './EditDialog';

const t = attach.link;

/**
 * listOf returns the secrets of a service account for the selected use. The use is the name of the
 * account's field that contains these secrets.
 */
const listOf = (account: LooseObject, { use = '' }: Values) => account[use] as { name?: string }[] | undefined;

/** linkSecret adds a secret to a service account, as oc secrets link does. */
export const linkSecret: Edit = {
  title: t.action,
  sections: (account) => [
    {
      title: t.title,
      help: t.body,
      inputs: [
        {
          key: 'secret',
          label: t.secret,
          type: 'select',
          required: true,
          choices: [{ value: '', label: text.forms.route.choose }],
          source: namesOf('secrets'),
          problem: (name, values) => (listOf(account, values)?.some((secret) => secret.name === name) ? t.linked : undefined),
        },
        { key: 'use', label: t.use, type: 'select', choices: choicesOf(t.uses) },
      ],
    },
  ],
  values: () => ({ secret: '', use: 'imagePullSecrets' }),
  operations: (account, values) => [appended(`/${values.use}`, listOf(account, values), { name: values.secret })],
};

/** LinkSecret is the dialog that links a secret to a service account. */
export default function LinkSecret(props: DialogProps) {
  return <EditDialog edit={linkSecret} {...props} />;
}
