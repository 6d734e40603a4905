import { afterEach, expect, it } from 'vitest';
import { createPath } from './createLink';

afterEach(() => {
  delete window.OPENSHIFT_CONSTANTS;
});

it.each([
  ['imageStream=python&imageTag=3.6&name=app&sourceURI=https://h/a.git&sourceRef=v1&contextDir=web', '/catalog/builder/openshift/python?tag=3.6&name=app&uri=https%3A%2F%2Fh%2Fa.git&ref=v1&contextDir=web'],
  ['template=page&namespace=shared&templateParamsMap={"A":"b"}', '/catalog/template/shared/page?parameters=%7B%22A%22%3A%22b%22%7D'],
  ['imageStream=a/../b&namespace=?x', '/catalog/builder/%3Fx/a%2F..%2Fb?'],
  ['sourceURI=https://h/a.git', '/catalog'],
])('opens the form for %s', (link, path) => expect(createPath(new URLSearchParams(link))).toBe(path));

it('rejects links to projects that scripts have not listed', () => {
  window.OPENSHIFT_CONSTANTS = { CREATE_FROM_URL_WHITELIST: ['openshift'] };
  expect(createPath(new URLSearchParams('template=page'))).toBe('/catalog/template/openshift/page?');
  expect(() => createPath(new URLSearchParams('template=page&namespace=shared'))).toThrow('the project shared');
});
