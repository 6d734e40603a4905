/** sourceOfKind are the kinds of objects that containers can get, as the dialog names them. */
export const sourceOfKind: Readonly<Record<string, string>> = { PersistentVolumeClaim: 'claim', ConfigMap: 'configMap', Secret: 'secret' };
