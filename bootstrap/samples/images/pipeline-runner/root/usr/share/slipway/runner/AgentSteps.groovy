package pipeline

/** Steps that choose the pod where commands run, as in Jenkins' Kubernetes plugin. */
trait AgentSteps {
    abstract Run getRun()

    abstract Agent agent()

    abstract leaf(String kind, Closure body)

    abstract block(String kind, Map changes, Closure body)

    def podTemplate(Map options, Closure body) {
        Map<String, Map> templates = new LinkedHashMap<String, Map>(Frame.current().templates)
        String label = options.label ?: options.name ?: "${getRun().name}-${templates.size()}"
        templates[label] = podOf(options)
        block('podTemplate', [templates: templates, env: Frame.current().env + [POD_LABEL: label]], body)
    }

    Map containerTemplate(Map options) {
        Map container = [name: options.name, image: options.image]
        if (options.command) container.command = options.command instanceof List ? options.command : options.command.toString().tokenize(' ')
        if (options.args) container.args = options.args instanceof List ? options.args : OpenShift.split('args', [options.args.toString().replace('${computer.jnlpmac} ${computer.name}', '')])
        if (options.workingDir) container.workingDir = options.workingDir
        if (options.alwaysPullImage) container.imagePullPolicy = 'Always'
        if (options.envVars) container.env = options.envVars
        if (options.ports) container.ports = options.ports
        Map limits = [cpu: options.resourceLimitCpu, memory: options.resourceLimitMemory].findAll { it.value }
        Map requests = [cpu: options.resourceRequestCpu, memory: options.resourceRequestMemory].findAll { it.value }
        if (limits || requests) container.resources = [limits: limits, requests: requests]
        container
    }

    Map envVar(Map options) { [name: options.key ?: options.name, value: options.value.toString()] }

    Map containerEnvVar(Map options) { envVar(options) }

    Map secretEnvVar(Map options) { [name: options.key, valueFrom: [secretKeyRef: [name: options.secretName, key: options.secretKey]]] }

    Map portMapping(Map options) { [name: options.name, containerPort: options.containerPort as int] }

    Map emptyDirVolume(Map options) { [path: options.mountPath, volume: [emptyDir: options.memory ? [medium: 'Memory'] : [:]]] }

    Map secretVolume(Map options) { [path: options.mountPath, volume: [secret: [secretName: options.secretName]]] }

    Map configMapVolume(Map options) { [path: options.mountPath, volume: [configMap: [name: options.configMapName]]] }

    Map persistentVolumeClaim(Map options) { [path: options.mountPath, readOnly: options.readOnly as boolean, volume: [persistentVolumeClaim: [claimName: options.claimName]]] }

    def container(Object name, Closure body) {
        Agent agent = agent()
        if (!(agent instanceof PodAgent)) throw new Failure("container: the agent ${agent.name} is not a pod; use podTemplate, or agent { kubernetes { } }")
        block('container', [agent: ((PodAgent) agent).inside((name instanceof Map ? name.name : name).toString())], body)
    }

    /** Returns the agent for a `node` block. */
    Agent agentFor(String label) {
        if (label in ['', 'any', 'master', 'built-in']) return getRun().local
        Map template = Frame.current().templates[label]
        PodAgent.start(getRun(), template ?: [spec: [containers: [[name: PodAgent.DEFAULT, image: imageOf(label)]]]])
    }

    /**
     * Returns the agent for the directives `agent { kubernetes { } }` and `agent { docker { } }`.
     */
    Agent agentOf(Map options) {
        if (options.docker) {
            String image = options.docker instanceof Map ? options.docker.image : options.docker
            return PodAgent.start(getRun(), [spec: [containers: [[name: PodAgent.DEFAULT, image: image]]]])
        }
        Map pod = options.kubernetes instanceof Map ? (Map) options.kubernetes : [:]
        PodAgent agent = PodAgent.start(getRun(), podOf(pod))
        pod.defaultContainer ? agent.inside(pod.defaultContainer.toString()) : agent
    }

    private Map podOf(Map options) {
        String text = options.yamlFile ? new File(getRun().source() ?: getRun().work, options.yamlFile.toString()).getText('UTF-8') : options.yaml
        Map pod = text ? (Map) getRun().steps.readYaml(text: text.stripIndent()) : [:]
        Map spec = new LinkedHashMap((Map) (pod.spec ?: [:]))
        List<Map> containers = (spec.containers ?: []) + (options.containers ?: [])
        if (options.containerTemplate) containers << containerTemplate((Map) options.containerTemplate)
        if (options.inheritFrom && !containers.any { it.name == PodAgent.DEFAULT }) {
            Map parent = Frame.current().templates[options.inheritFrom.toString()]
            containers.addAll(0, parent ? (List) parent.spec.containers : [[name: PodAgent.DEFAULT, image: imageOf(options.inheritFrom.toString())]])
        }
        List volumes = options.volumes ?: []
        volumes.eachWithIndex { Map v, int i -> spec.volumes = (spec.volumes ?: []) + [[name: "volume-$i".toString()] + v.volume] }
        spec.containers = containers.collect { Map c ->
            Map shared = options.envVars ? [env: (c.env ?: []) + options.envVars] : [:]
            if (volumes) shared.volumeMounts = (c.volumeMounts ?: []) + volumes.withIndex().collect { Map v, int i -> [name: "volume-$i".toString(), mountPath: v.path, readOnly: v.readOnly ?: false] }
            c + shared
        }
        if (options.serviceAccount) spec.serviceAccountName = options.serviceAccount
        if (options.nodeSelector) spec.nodeSelector = options.nodeSelector.toString().tokenize(',').collectEntries { it.tokenize('=') as List }
        [metadata: pod.metadata, spec: spec]
    }

    /**
     * Returns the image for a label: the image of one of the project's image streams with the label
     * role=jenkins-slave or role=jenkins-agent, as in Jenkins, or a builder image from the catalog.
     */
    private String imageOf(String label) {
        (String) leaf('image') {
            String images = '/apis/image.openshift.io/v1/namespaces/'
            String selector = URLEncoder.encode('role in (jenkins-slave,jenkins-agent)', 'UTF-8')
            Map stream = getRun().api.call('GET', "$images${getRun().namespace}/imagestreams?labelSelector=$selector").items.find {
                label in [it.metadata.annotations?.get('agent-label'), it.metadata.annotations?.get('slave-label'), it.metadata.name]
            }
            String name = stream ? stream.metadata.name : [maven: 'java'][label] ?: label
            try {
                return getRun().api.call('GET', "$images${stream ? getRun().namespace : 'openshift'}/imagestreamtags/${URLEncoder.encode(name, 'UTF-8')}:latest").image.dockerImageReference
            } catch (ApiError e) {
                if (e.status != 404) throw e
                throw new Failure("no agent has the label \"$label\": define a podTemplate, give an image stream of the project the label role=jenkins-agent, or create the image openshift/$name:latest")
            }
        }
    }
}
