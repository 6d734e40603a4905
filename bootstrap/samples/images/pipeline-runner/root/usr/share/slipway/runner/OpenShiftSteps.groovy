package pipeline

/** OpenShift's older steps, which precede the object `openshift`. */
trait OpenShiftSteps {
    abstract Run getRun()

    abstract leaf(String kind, Closure body)

    abstract void pause(long millis)

    abstract timeout(Map options, Closure body)

    /**
     * Runs an action in the cluster and project of the options, with the options' token and
     * timeout.
     */
    private within(Map options, int minutes, Closure body) {
        OpenShift openshift = getRun().openshift
        Closure inProject = { openshift.withProject(options.namespace ?: '') { body(openshift) } }
        Closure all = options.apiURL ? { openshift.withCluster(options.apiURL, options.authToken ?: '', inProject) } : options.authToken ? { openshift.withCredentials(options.authToken, inProject) } : inProject
        Map limit = [time: (options.waitTime ?: minutes * 60000).toString().toLong() , unit: (options.waitUnit ?: 'milli').toString().toLowerCase()]
        limit.unit = [milli: 'MILLISECONDS', sec: 'SECONDS', min: 'MINUTES'][(String) limit.unit] ?: 'MILLISECONDS'
        timeout(limit, all)
    }

    /** Returns a required parameter of a step. The parameter can have several names. */
    private String required(Map options, String... names) {
        String value = names.findResult { options[it] }
        if (!value) throw new Failure("set the parameter ${names[0]}")
        value
    }

    private boolean on(Object value) { value.toString() == 'true' }

    private List<String> words(Object text) { text.toString().tokenize(', ') }

    void openshiftBuild(Map options) {
        String name = required(options, 'bldCfg', 'buildConfig')
        List<String> env = options.env.collect { "--env=${it.name}=${it.value}".toString() }
        List<String> from = options.buildName ? ["--from-build=$options.buildName".toString()] : [name]
        List<String> commit = options.commitID ? ["--commit=$options.commitID".toString()] : []
        within(options, 15) { OpenShift o ->
            o.oc('start-build', from + ['--wait'] + (on(options.showBuildLogs) ? ['--follow'] : []) + env + commit, null, true)
        }
    }

    void openshiftDeploy(Map options) {
        String name = 'dc/' + required(options, 'depCfg', 'deploymentConfig')
        within(options, 10) { OpenShift o ->
            while (!starts(o, name)) leaf('wait') { pause(1000); null }
            o.oc('rollout', ['status', name], null, true)
        }
    }

    /**
     * Starts a rollout. Returns false while another rollout is in progress, for example a rollout
     * that an image trigger has started.
     */
    boolean starts(OpenShift o, String name) {
        try {
            o.oc('rollout', ['latest', name])
            true
        } catch (Failure e) {
            if (!e.message.contains('is already in progress')) throw e
            false
        }
    }

    void openshiftScale(Map options) {
        String name = 'dc/' + required(options, 'depCfg', 'deploymentConfig'), replicas = required(options, 'replicaCount')
        within(options, 3) { OpenShift o ->
            o.oc('scale', [name, "--replicas=$replicas"])
            if (on(options.verifyReplicaCount)) o.selector(name).watch { (it.object().status.availableReplicas ?: 0) == (replicas as int) }
        }
    }

    /** Tags an image: one or more streams with one or more tags, or pairs of streams and tags. */
    void openshiftTag(Map options) {
        List<String> streams = words(required(options, 'destStream', 'destinationStream')), tags = words(required(options, 'destTag', 'destinationTag'))
        if (streams.size() > 1 && tags.size() > 1 && streams.size() != tags.size()) throw new Failure("got ${streams.size()} streams and ${tags.size()} tags")
        String project = options.destinationNamespace ? "$options.destinationNamespace/" : '', tag = required(options, 'srcTag', 'sourceTag')
        String from = required(options, 'srcStream', 'sourceStream') + (tag.startsWith('sha256:') ? '@' : ':') + tag
        List<String> to = (0..<Math.max(streams.size(), tags.size())).collect { int i -> project + streams[Math.min(i, streams.size() - 1)] + ':' + tags[Math.min(i, tags.size() - 1)] }
        within(options, 3) { OpenShift o -> o.oc('tag', [from] + to + (on(options.alias) ? ['--alias'] : [])) }
    }

    /**
     * Returns the name of an existing tag's image. In Jenkins, changes to this image start builds.
     * In Slipway, an ImageChange trigger of the BuildConfig starts builds.
     */
    String openshiftImageStream(Map options) {
        String tag = required(options, 'name', 'imageStreamName') + ':' + required(options, 'tag'), image = null
        within(options, 3) { OpenShift o -> image = o.oc('get', ["istag/$tag", '-o', 'jsonpath={.image.metadata.name}']).out.trim() }
        leaf('log') { getRun().log.println("The image of $tag is $image"); null }
        image
    }

    void openshiftVerifyBuild(Map options) {
        String name = required(options, 'bldCfg', 'buildConfig')
        within(options, 1) { OpenShift o ->
            o.selector("bc/$name").related('builds').watch {
                String phase = it.objects().max { b -> (b.metadata.annotations['openshift.io/build.number'] ?: '0') as int }?.status?.phase
                if (phase in ['Failed', 'Error', 'Cancelled']) throw new Failure("the last build of $name has the phase $phase")
                phase == 'Complete'
            }
        }
    }

    void openshiftVerifyDeployment(Map options) {
        String name = 'dc/' + required(options, 'depCfg', 'deploymentConfig')
        within(options, 3) { OpenShift o ->
            o.oc('rollout', ['status', name], null, true)
            if (!on(options.verifyReplicaCount)) return
            int replicas = (options.replicaCount ?: o.selector(name).object().spec.replicas) as int
            o.selector(name).watch { (it.object().status.availableReplicas ?: 0) == replicas }
        }
    }

    /** Waits until a service accepts connections on its first port. */
    void openshiftVerifyService(Map options) {
        String name = required(options, 'svcName', 'serviceName')
        within(options, 10) { OpenShift o ->
            if (!accepts(o.selector('service', name), (options.retryCount ?: 100) as int)) throw new Failure("the service $name does not accept connections")
        }
    }

    /** Reports whether a service accepts a connection within a number of attempts. */
    boolean accepts(Selector service, int attempts) {
        if (Frame.current().cluster) throw new Failure('the services of another cluster cannot be reached')
        Map spec = (Map) service.object().spec
        String host = spec.clusterIP == 'None' ? "${service.name().tokenize('/')[1]}.${service.project()}.svc" : spec.clusterIP
        (boolean) leaf('connect') {
            for (int i = 0; i < attempts; i++) {
                if (i) pause(1000)
                try {
                    new Socket().withCloseable { Socket s -> s.connect(new InetSocketAddress(host, spec.ports[0].port as int), 2500) }
                    return true
                } catch (IOException e) {
                    getRun().log.println("The service does not accept connections: $e.message")
                }
            }
            false
        }
    }

    /**
     * Returns the objects in a step's parameter, if the parameter's text has more than one line.
     */
    private String objects(Map options) { required(options, 'jsonyaml', 'json', 'yaml') + '\n' }

    void openshiftCreateResource(Map options) { within(options, 3) { OpenShift o -> o.oc('create', ['-f', '-'], objects(options)) } }

    void openshiftDeleteResourceByJsonYaml(Map options) { within(options, 3) { OpenShift o -> o.oc('delete', ['-f', '-', '--ignore-not-found'], objects(options)) } }

    void openshiftDeleteResourceByKey(Map options) {
        List<String> types = words(required(options, 'types')), keys = words(required(options, 'keys'))
        if (types.size() != keys.size()) throw new Failure("got ${types.size()} types and ${keys.size()} keys")
        within(options, 3) { OpenShift o -> o.oc('delete', [types, keys].transpose().collect { type, key -> "$type/$key".toString() } + ['--ignore-not-found']) }
    }

    void openshiftDeleteResourceByLabels(Map options) {
        List<String> keys = words(required(options, 'keys')), values = words(required(options, 'values'))
        if (keys.size() != values.size()) throw new Failure("got ${keys.size()} keys and ${values.size()} values")
        String labels = [keys, values].transpose().collect { key, value -> "$key=$value" }.join(',')
        within(options, 3) { OpenShift o -> o.oc('delete', [words(required(options, 'types')).join(','), '-l', labels]) }
    }

    /** Runs a command in a pod. If the command fails, the step does not fail. */
    Map openshiftExec(Map options) {
        String pod = required(options, 'pod')
        List container = options.container ? ['-c', options.container] : []
        List command = [options.command, options.arguments].flatten().findAll { it != null }.collect { it instanceof Map ? it.value : it }
        Map result = [stdout: '', stderr: '', error: '', failure: '']
        within(options, 3) { OpenShift o ->
            try {
                Map action = o.oc('exec', [pod] + container + ['--'] + command)
                result.putAll([stdout: action.out, stderr: action.err])
            } catch (Failure e) {
                if (e.result == 'ABORTED') throw e
                result.error = e.message
            }
        }
        result
    }
}
