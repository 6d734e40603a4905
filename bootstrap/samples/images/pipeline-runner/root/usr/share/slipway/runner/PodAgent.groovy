package pipeline

/**
 * A pod in the project, in which commands run. It uses the pipeline's account. Its containers share
 * a workspace. `oc exec` starts the commands. The pod ends with the agent's block, and is deleted
 * with the build's pod.
 */
class PodAgent extends Agent {
    static final String DIRECTORY = '/home/jenkins/agent', DEFAULT = 'jnlp'
    static final List<String> WAIT = ['sh', '-c', 'trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done']
    /**
     * Reads the directory, the variables and the words of a command from its input, one per line.
     * They can be secret, and the API server logs the command line of an exec request.
     */
    private static final String LOADER = 'set --; while IFS= read -r l && test -n "$l"; do v=$(printf %b "${l#?}."); v=${v%.}; ' +
            'case $l in E*) export "$v";; D*) mkdir -p "$v" && cd "$v" || exit 1;; *) set -- "$@" "$v";; esac; done; exec "$@"'
    /**
     * The end of the loader script: the container writes both outputs to one stream, because two
     * streams would not keep their order.
     */
    private static final String MERGED = ' 2>&1'
    private static final List<String> ERRORS = ['InvalidImageName', 'ImagePullBackOff', 'CreateContainerConfigError', 'RunContainerError']
    private final String container
    private final Closure cleanup

    private PodAgent(Run run, String pod, String container, Closure cleanup) {
        super(run, DIRECTORY + '/workspace')
        name = pod
        this.container = container
        this.cleanup = cleanup
    }

    /** Returns the agent for another container in the pod. */
    PodAgent inside(String other) { new PodAgent(run, name, other, cleanup) }

    /**
     * Creates a pod, and waits until it is running. If an earlier runner has created the pod, uses
     * that pod.
     */
    static PodAgent start(Run run, Map template) {
        String pod = (String) run.steps.leaf('agent') {
            run.api.call('POST', "/api/v1/namespaces/$run.namespace/pods", complete(run, template)).metadata.name
        }
        Closure cleanup = { remove(run, pod) }
        run.cleanups << cleanup
        def agent = new PodAgent(run, pod, DEFAULT, cleanup)
        try {
            run.steps.leaf('agent is ready') { agent.waitUntilReady(); null }
        } catch (Throwable t) {
            agent.close()
            throw t
        }
        agent
    }

    /**
     * Returns the pod for a template. As in Jenkins, steps outside `container` run in the container
     * jnlp.
     */
    private static Map complete(Run run, Map template) {
        Map own = run.api.call('GET', pathOf(run, System.getenv('HOSTNAME')))
        Map metadata = (Map) template.metadata ?: [:], spec = new LinkedHashMap((Map) template.spec)
        List<Map> containers = spec.containers.collect { new LinkedHashMap((Map) it) }
        Map main = containers.find { it.name == DEFAULT }
        if (!main) containers << (main = [name: DEFAULT])
        if (!main.image || main.image.contains('jnlp')) main.image = own.spec.containers[0].image
        main.remove('args') // the arguments would connect the container to Jenkins
        main.command = WAIT
        containers.each { Map c ->
            if (c.command == ['cat']) c.command = WAIT
            c.remove('tty')
            c.volumeMounts = (c.volumeMounts ?: []) + [[name: 'slipway-workspace', mountPath: DIRECTORY]]
        }
        spec.containers = containers
        spec.volumes = (spec.volumes ?: []) + [[name: 'slipway-workspace', emptyDir: [:]]]
        Map defaults = [restartPolicy: 'Never', serviceAccountName: run.build.spec.serviceAccount ?: 'builder', terminationGracePeriodSeconds: 5]
        [apiVersion: 'v1', kind: 'Pod', spec: defaults + spec, metadata: [
            generateName: "${run.name.take(40)}-agent-".toString(), labels: metadata.labels ?: [:], annotations: metadata.annotations ?: [:],
            ownerReferences: [[apiVersion: 'v1', kind: 'Pod', name: own.metadata.name, uid: own.metadata.uid]]]]
    }

    private static String pathOf(Run run, String pod) { "/api/v1/namespaces/$run.namespace/pods/$pod" }

    private void waitUntilReady() {
        while (true) {
            Map status = (Map) run.api.call('GET', pathOf(run, name)).status
            List containers = (List) status.containerStatuses ?: []
            if (status.phase in ['Failed', 'Succeeded'] || containers.any { it.state.terminated }) throw new Failure("the agent $name has ended: ${containers.findResult { it.state.terminated ? it.name + ' ' + it.state.terminated.reason : null } ?: status.reason}")
            if (containers && containers.every { it.state.running }) return
            Map waiting = (Map) containers.findResult { it.state.waiting?.reason in ERRORS ? it.state.waiting : null }
            if (waiting) throw new Failure("the agent $name does not start: $waiting.reason: $waiting.message")
            run.steps.pause(250)
        }
    }

    Process start(List<String> command, boolean mergeOutput) {
        Frame frame = Frame.current()
        def builder = new ProcessBuilder(['oc', 'exec', '-i', '-n', run.namespace, name, '-c', container, '--', 'sh', '-c', mergeOutput ? LOADER + MERGED : LOADER])
        builder.environment().remove('BUILD')
        builder.redirectErrorStream(mergeOutput)
        Process process = builder.start()
        List<String> lines = ['D' + (frame.dir ?: workspace)] + variables(frame).findAll { it.key ==~ /[A-Za-z_]\w*/ }.collect { k, v -> "E$k=$v".toString() } + command.collect { 'W' + it }
        String text = lines.collect { it.replace('\\', '\\\\').replace('\n', '\\n') + '\n' }.join('') + '\n'
        try {
            process.outputStream.write(text.getBytes('UTF-8'))
            process.outputStream.flush()
        } catch (IOException ignored) { // the exit code contains the reason
        }
        process
    }

    void close() { if (run.cleanups.remove(cleanup)) cleanup() }

    private static void remove(Run run, String pod) {
        try {
            run.api.call('DELETE', pathOf(run, pod))
        } catch (ApiError e) {
            if (e.status != 404) run.log.println("warning: cannot delete the agent $pod: $e.message")
        }
    }
}
