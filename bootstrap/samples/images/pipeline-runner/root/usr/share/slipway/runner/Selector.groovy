package pipeline

/**
 * Objects in a project. They are selected by name, or by kind and labels. In the second case, the
 * selected objects can change.
 */
class Selector extends Result {
    /** The labels of objects that belong to an object of a kind. */
    private static final Map<String, String> LABELS = [
        template: 'template', build: 'openshift.io/build.name', buildconfig: 'openshift.io/build-config.name', deploymentconfig: 'deploymentconfig',
        replicationcontroller: 'deployment', job: 'job-name',
    ]
    private static final Map<String, String> SHORT = [
        svc: 'service', po: 'pod', bc: 'buildconfig', is: 'imagestream', istag: 'imagestreamtag', rc: 'replicationcontroller', dc: 'deploymentconfig', cm: 'configmap',
        sa: 'serviceaccount', pvc: 'persistentvolumeclaim', deploy: 'deployment', rs: 'replicaset', sts: 'statefulset', ds: 'daemonset',
    ]
    private static final List<Integer> DELAYS = [250, 500, 1000, 2000, 5000]
    private final OpenShift openshift
    private final List<String> list
    private final String kind
    private final Map labels

    Selector(OpenShift openshift, List list, String operation = 'selector', List<Map> actions = []) {
        super(operation, actions)
        this.openshift = openshift
        this.list = list*.toString()
    }

    Selector(OpenShift openshift, String kind, Map labels) {
        super('selector', [])
        this.openshift = openshift
        this.kind = kind
        this.labels = labels
    }

    /**
     * Returns the oc arguments that select the objects, or an empty list if there cannot be any
     * objects.
     */
    private List<String> words(boolean all = false) {
        if (list != null) return list
        if (!labels) return all ? [kind, '--all'] : [kind]
        [kind, '-l', labels.collect { k, v -> "$k=$v" }.join(',')]
    }

    /** Returns the kinds and names of the existing objects. */
    List<String> names() {
        words() ? OpenShift.names((String) openshift.oc('get', words() + ['-o', 'name', '--ignore-not-found']).out) : []
    }

    /** Runs an oc command once for all objects. */
    private Result once(String verb, List<String> after, boolean toLog = false) { new Result(verb, words() ? [openshift.oc(verb, words(!toLog) + after, null, toLog)] : []) }

    /** Runs an oc command for each object. */
    Result each(String operation, List<String> before, List<String> after, boolean toLog = false) {
        new Result(operation, names().collect { openshift.oc(before[0], before.drop(1) + [it] + after, null, toLog) })
    }

    String name() { single(names()) }

    String project() { openshift.project() }

    /**
     * Reports whether there are objects. If objects are selected by name, all of them must exist.
     */
    boolean exists() { list == null ? count() > 0 : list && count() == list.size() }

    int count() { names().size() }

    List<Map> objects(Map options = [:]) {
        List<Map> objects = words() ? OpenShift.objects((String) openshift.oc('get', words() + ['-o', 'json', '--ignore-not-found']).out) : []
        if (options.exportable) objects.each { Map o ->
            o.remove('status')
            ['uid', 'resourceVersion', 'creationTimestamp', 'generation', 'selfLink', 'managedFields', 'ownerReferences', 'namespace'].each { o.metadata.remove(it) }
        }
        objects
    }

    Map object(Map options = [:]) { (Map) single(objects(options)) }

    String asJson(Map ignored = [:]) { openshift.oc('get', words() + ['-o', 'json']).out }

    String asYaml(Map ignored = [:]) { openshift.oc('get', words() + ['-o', 'yaml']).out }

    private single(List values) {
        if (values.size() != 1) throw new Failure("$this has ${values.size()} objects, want one")
        values[0]
    }

    /** Calls a closure with a selector for each object. */
    void withEach(Closure body) { names().each { body(new Selector(openshift, [it])) } }

    /** Waits until there are enough objects, and a closure returns true for each of them. */
    void untilEach(Object minimum = 1, Closure body) {
        watch {
            List<String> names = names()
            names.size() >= (minimum as int) && names.every { body(new Selector(openshift, [it])) }
        }
    }

    /** Waits until a closure returns true. */
    void watch(Closure body) {
        if (list != null && list.empty) throw new Failure('the selector is empty, and watch would never end')
        for (int i = 0; !body(this); i++) openshift.sleep(DELAYS[Math.min(i, DELAYS.size() - 1)])
    }

    private static String kindOf(String word) {
        String kind = word.toLowerCase().replaceFirst(/\..*/, '').trim()
        SHORT[kind] ?: kind.replaceFirst(/(?<!s)s$/, '')
    }

    /** Returns the objects of a kind that belong to this object. */
    Selector related(Object other) {
        List<String> owner = ((String) single(list != null ? list : names())).tokenize('/')
        String label = LABELS[kindOf(owner[0])]
        if (!label) throw new Failure("related: ${owner[0]} has no label on its objects")
        if (label == 'deploymentconfig' && kindOf(other.toString()) == 'replicationcontroller') label = 'openshift.io/deployment-config.name'
        new Selector(openshift, other.toString(), [(label): owner[1]])
    }

    Selector narrow(Object other) { new Selector(openshift, names().findAll { kindOf(it.tokenize('/')[0]) == kindOf(other.toString()) }) }

    Selector union(Selector other) { new Selector(openshift, (names() + other.names()).unique()) }

    Selector freeze() { new Selector(openshift, names()) }

    Result delete(Object... arguments) { once('delete', OpenShift.split('delete', arguments as List)) }

    Result describe(Object... arguments) { once('describe', OpenShift.split('describe', arguments as List), true) }

    Result logs(Object... arguments) { each('logs', ['logs'], OpenShift.split('logs', arguments as List), true) }

    Result patch(Object patch, Object... arguments) { each('patch', ['patch'], ['-p', OpenShift.patchText(patch)] + OpenShift.split('patch', arguments as List)) }

    Result set(Object verb, Object... arguments) { each('set', ['set', verb.toString()], OpenShift.split('set', arguments as List)) }

    Result volume(Object... arguments) { set('volume', arguments) }

    Result cancelBuild(Object... arguments) { each('cancelBuild', ['cancel-build'], OpenShift.split('cancel-build', arguments as List)) }

    Result label(Map labels, Object... arguments) { once('label', pairs(labels) + OpenShift.split('label', arguments as List)) }

    Result annotate(Map annotations, Object... arguments) { once('annotate', pairs(annotations) + OpenShift.split('annotate', arguments as List)) }

    private static List<String> pairs(Map map) { map.collect { k, v -> v == null ? "$k-".toString() : "$k=$v".toString() } }

    Selector startBuild(Object... arguments) {
        List<String> words = OpenShift.split('start-build', arguments as List)
        openshift.selectorOf('startBuild', each('startBuild', ['start-build'], words + ['-o', 'name'], OpenShift.follows(words)).actions)
    }

    Rollout rollout() { new Rollout(this) }

    def methodMissing(String verb, Object arguments) {
        if (!(verb in ['scale', 'autoscale', 'expose', 'deploy', 'idle', 'rollback'])) throw new Failure("a selector has no action $verb: see $PipelineScript.STEPS")
        each(verb, [verb], OpenShift.split(verb, arguments as List))
    }

    String toString() { list != null ? "selector($list)" : "selector($kind, $labels)" }
}
