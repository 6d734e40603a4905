/** tour contains the text of the catalog's tour. target selects the element of a step. */
export const tour = {
  next: 'Next',
  back: 'Back',
  end: 'End the tour',
  close: 'Close the tour',
  progress: (step: number, steps: number) => `${step} of ${steps}`,
  steps: [
    {
      target: '[data-tour="search"]',
      title: 'Find what you need',
      body: 'The catalog contains templates, builder images and services. Search by name, description or tag.',
    },
    { target: '[data-tour="categories"]', title: 'Choose a category', body: 'A category shows only one kind of item. To create an application, choose an item and fill in its form.' },
    { target: '[data-tour="forms"]', title: 'Bring your own', body: 'Build from a Git repository or from a Dockerfile, or deploy an existing image.' },
    { target: '[data-tour="project"]', title: 'Work in a project', body: 'Each application belongs to a project. Choose a project to see its applications, or create one.' },
    { target: '[data-tour="help"]', title: 'Get help', body: 'This menu contains the command line tools and this tour.' },
    { target: '[data-tour="user"]', title: 'Log in on the command line', body: 'This menu contains a login command for oc. You also log out here.' },
  ],
};
