/** images are the texts about the images of a stream, and about applications from an image. */
export const images = {
  history: (tag: string) => `Earlier images of ${tag}`,
  hideHistory: (tag: string) => `Hide earlier images of ${tag}`,
  since: 'Since',
  deploy: {
    body: 'Run an image that exists, from any registry that the cluster can reach.',
    image: 'Image',
    imageHelp: 'For example registry.example.com/team/app:1.0',
    imageInvalid: 'Write the name of an image, such as registry.example.com/team/app:1.0',
    find: 'Find',
    found: (ports: string) => `The image was found. Its ports: ${ports}.`,
    noPorts: 'The image was found. It has no ports, so that it gets no service.',
    root: 'The image runs as root. The cluster runs it as another user, unless an administrator allows root.',
    notFound: (reason: string) => `The image cannot be read: ${reason}. You can still deploy it: it then has no service, and does not follow its tag.`,
    env: 'Environment variables',
    envInvalid: 'Each name is unique and has only letters, digits, dots, hyphens and underscores.',
  },
  dockerfile: {
    body: 'Build an image from a Dockerfile, and run it.',
    from: 'Dockerfile',
    froms: { git: 'In a Git repository', text: 'Written here' } as Record<string, string>,
    text: 'Text of the Dockerfile',
    textInvalid: 'A Dockerfile has a line that begins with FROM.',
    path: 'Path of the Dockerfile',
    pathHelp: 'In the context directory. Empty for Dockerfile.',
  },
};
