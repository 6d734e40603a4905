/** sourceOfKind maps the kinds of objects that containers can use to their names in the dialog. */
export const sourceOfKind: Readonly<Record<string, string>> = { PersistentVolumeClaim: 'claim', ConfigMap: 'configMap', Secret: 'secret' };
