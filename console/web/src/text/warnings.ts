/** Advice is a problem with its remedy. The remedy is empty if the problem's text is sufficient. */
export interface Advice {
  problem: string;
  remedy: string;
}

const advice = (problem: string, remedy = ''): Advice => ({ problem, remedy });

/** warnings contains the texts about problems of a project. */
export const warnings = {
  showAll: (n: number) => `Show all ${n}`,
  showFewer: 'Show fewer',
  noService: (service: string) => advice(`The service ${service} does not exist.`, 'Create the service, or change the route\'s services on the Traffic tab.'),
  manyPorts: (service: string) => advice(`The service ${service} has several ports, but the route does not name one.`, 'Select a port with the action Edit route.'),
  noTermination: () => advice('The route uses TLS, but has no termination type.', 'Select a termination with the action Edit route.'),
  refused: (router: string, reason: string) => advice(`The router ${router} does not accept the route: ${reason}`, 'Change the host, the path or the certificate of the route.'),
  noTriggerStream: (tag: string) => advice(`The image trigger has no effect, because the image stream of ${tag} does not exist.`, 'Create the image stream, or select another tag with the action Edit triggers.'),
  noTriggerImage: (tag: string) => advice(`The image trigger has no effect until a build or an import creates ${tag}.`, 'Import the image, or start a build that creates it.'),
  failedDeployment: (version: string) => advice(`Deployment #${version} has failed.`, 'Correct the configuration, and deploy again.'),
  failedDeployer: (config: string, version: string) => advice(`Deployment #${version} of ${config} has failed.`, 'The log of the deployer pod contains the reason. Correct the configuration, and deploy again.'),
  noPods: (reason: string) => advice(`Pods cannot be created: ${reason}`, 'Compare the requests of the pods with the quota and the limits of the project.'),
  noOutputStream: (tag: string) => advice(`Builds push to ${tag}, but its image stream does not exist.`, 'Create the image stream, or change the output of the builds.'),
  failedBuild: (build: string) => advice(`The build ${build} has failed.`, 'The log contains the reason.'),
  cycle: (names: string) => advice(`These builds trigger each other: ${names}`, 'Use another image as the base of one of them.'),
  restarts: (n: number) => advice(`Its containers have restarted ${n} times.`, 'The log of the previous container can contain the reason.'),
  noVolume: (reason: string) => advice(`A volume cannot be mounted: ${reason}`, 'The page of the pod shows the failures of all its volumes.'),
  noNode: (reason: string) => advice(`It has no node: ${reason}`, 'Change the requests or the node selector of the pod, or wait for a node.'),
  overlap: (other: string, pod: string) => advice(`It selects the same pod as ${other}: ${pod}`, 'Use selectors that select different pods.'),
  noTarget: (target: string) => advice(`The target ${target} does not exist.`, 'Delete the autoscaler, or change its target.'),
  noSecret: (secret: string) => advice(`The secret ${secret} of a volume does not exist.`, 'Create the secret, or remove the volume.'),
  noReadiness: () => advice('It has no readiness probe, so pods receive requests before they are ready.', 'Add one with the action Edit health checks.'),
  noLiveness: () => advice('It has no liveness probe, so containers that hang are not restarted.', 'Add one with the action Edit health checks.'),
  podRemedies: {
    ImagePull: 'Check the name of the image, and that the project may pull it.',
    ErrImage: 'Check the name of the image, and that the project may pull it.',
    InvalidImageName: 'Correct the name of the image.',
    CrashLoop: 'Its container exits soon after it starts. The log of the previous container contains the reason.',
    OOMKilled: 'Its container needs more memory than its limit allows.',
    ConfigError: 'A config map or secret that it names does not exist.',
    Evicted: 'The node ran out of a resource. Set requests that match the needs of the pod.',
  } as Record<string, string>,
};
