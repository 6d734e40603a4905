package pipeline

import groovy.json.JsonOutput
import groovy.json.JsonSlurper

/**
 * A Jenkinsfile's object `openshift`: the DSL of OpenShift's client plugin. Its actions run oc,
 * either in the build's cluster with the pipeline's account or a token, or in another cluster.
 */
class OpenShift {
    /** oc commands that are also actions, with the same arguments. */
    private static final List<String> COMMANDS = ['tag', 'set', 'exec', 'rsh', 'rsync', 'run', 'expose', 'idle', 'policy', 'secrets', 'annotate', 'label', 'scale', 'autoscale', 'describe', 'import']
    private final Run run
    private int level

    OpenShift(Run run) { this.run = run }

    /** Arguments: a cluster's name or address, credentials or a token, and the block. */
    def withCluster(Object... arguments) {
        List list = arguments as List
        Cluster other = list.size() > 1 && !own(list[0]) ? Cluster.of(run, list[0].toString()) : null
        Map changes = other || Frame.current().cluster ? [cluster: other, project: other?.project, token: null] : [:]
        inside('withCluster', changes + (list.size() > 2 ? login(list[1]) : [:]), (Closure) list.last())
    }

    def withProject(Object... arguments) {
        String name = arguments.length > 1 && arguments[0] ? arguments[0] : Frame.current().cluster?.project ?: run.namespace
        inside("withProject ($name)", [project: name], (Closure) arguments.last())
    }

    /** Arguments: the ID of credentials or a token, and the block. */
    def withCredentials(Object... arguments) {
        inside('withCredentials', arguments.length > 1 ? login(arguments[0]) : [token: null], (Closure) arguments.last())
    }

    def doAs(Object... arguments) { withCredentials(*arguments) }

    private inside(String name, Map changes, Closure body) {
        Agent agent = Frame.current().agent
        if (!agent) changes += [agent: run.local, dir: run.local.workspace]
        run.steps.block("openshift.$name".toString(), changes, body)
    }

    private static boolean own(Object name) {
        String text = name ?: 'default'
        text in ['default', 'kubernetes'] || text.replaceFirst(/^(https|insecure):\/\//, '').replaceFirst(/(:443)?\/?$/, '') in
            ['kubernetes.default', 'kubernetes.default.svc', 'openshift.default.svc', 'openshift.default.svc.cluster.local', System.getenv('KUBERNETES_SERVICE_HOST')]
    }

    /** Returns the frame's changes for other credentials: the ID of credentials, or a token. */
    private Map login(Object credentials) {
        if (!credentials) return [token: null]
        Map<String, String> values = run.steps.secretOrNull(credentials.toString())
        String token = values == null ? credentials.toString().trim() : tokenOf(values)
        if (!token) throw new Failure("the secret of the credentials \"$credentials\" has no key \"openshift-client-token\"")
        run.log.hide([token])
        [token: token]
    }

    /** Returns the token in a secret, or null. */
    static String tokenOf(Map<String, String> values) { (values['openshift-client-token'] ?: values.token ?: values.secrettext)?.trim() }

    String project() { Frame.current().project ?: run.namespace }

    String cluster() { Frame.current().cluster?.server ?: ownCluster() }

    private static String ownCluster() {
        String host = System.getenv('KUBERNETES_SERVICE_HOST') ?: ''
        "https://${host.contains(':') ? "[$host]" : host}:${System.getenv('KUBERNETES_SERVICE_PORT')}"
    }

    /** Returns a cluster's entry and its user's entry in a kubeconfig. */
    static Map access(Cluster cluster, String token) {
        if (!cluster) return [cluster: [server: ownCluster(), 'certificate-authority': '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt'], user: [token: token]]
        if (!(token ?: cluster.token)) throw new Failure("the cluster $cluster.server needs a token: put it into the secret of the cluster, or name it in withCluster")
        [cluster: cluster.entry(), user: [token: token ?: cluster.token]]
    }

    boolean skipTLSVerify() { Frame.current().cluster?.insecure ?: false }

    void setLockName(Object ignored) { }

    /**
     * Logs each oc command and its output. An argument above 0 is also the level of oc's own log.
     */
    void logLevel(Object value) { level = value as int }

    void loglevel(Object value) { logLevel(value) }

    void verbose(Object value = true) { logLevel(value ? 8 : 0) }

    void failUnless(Object condition) { if (!condition) run.steps.error('Assertion failed') }

    /** Runs any oc command. */
    Result raw(Object... arguments) {
        List<String> words = split('raw', arguments as List)
        new Result('raw', [oc(words ? words[0] : 'help', words.drop(1))])
    }

    Selector create(Object... arguments) { change('create', arguments as List) }

    Selector apply(Object... arguments) { change('apply', arguments as List) }

    Selector replace(Object... arguments) { change('replace', arguments as List) }

    Result delete(Object... arguments) { new Result('delete', change('delete', arguments as List).actions) }

    Selector newApp(Object... arguments) { createNew('new-app', arguments as List) }

    Selector newBuild(Object... arguments) { createNew('new-build', arguments as List) }

    /**
     * With -o, oc only prints the objects. The names are in the same format as in the output of
     * create.
     */
    private Selector createNew(String verb, List arguments) { change('create', [objects((String) oc(verb, split(verb, arguments) + ['-o', 'json']).out)]) }

    Result newProject(Object name, Object... arguments) { new Result('newProject', [oc('new-project', [name, '--skip-config-write'] + split('new-project', arguments as List))]) }

    Selector startBuild(Object... arguments) {
        List<String> words = split('start-build', arguments as List)
        selectorOf('startBuild', [oc('start-build', words + ['-o', 'name'], null, follows(words))])
    }

    /** Reports whether the arguments to `oc start-build` print the build's log. */
    static boolean follows(List<String> words) { words.any { it in ['-F', '--follow', '--follow=true'] } }

    /**
     * Returns a template's objects. The template is given by its name or URL, or as text or a map.
     */
    List<Map> process(Object template, Object... arguments) {
        String text = markup(template instanceof Map ? template + [metadata: template.metadata.findAll { it.key != 'namespace' }] : template)
        List source = text ? ['-f', '-'] : template.toString().startsWith('http') ? ['-f', template] : [template]
        objects((String) oc('process', source + split('process', arguments as List) + ['-o', 'json'], text).out)
    }

    Result patch(Object object, Object patch, Object... arguments) {
        String text = markup(object)
        new Result('patch', [oc('patch', (text ? ['-f', '-'] : [object]) + ['-p', patchText(patch)] + split('patch', arguments as List), text)])
    }

    /** Returns a patch as text, without the surrounding quotation marks that a shell would need. */
    static String patchText(Object patch) {
        String text = patch instanceof Map || patch instanceof List ? JsonOutput.toJson(patch) : patch.toString().trim()
        text.length() > 1 && text[0] == "'" && text[-1] == "'" ? text[1..-2] : text
    }

    /** Reports whether a service accepts connections on its first port. */
    boolean verifyService(Object name) { run.steps.accepts(selector('service', name.toString()), 5) }

    Selector selector(Object kind = 'all', Object query = null) {
        if (kind instanceof Selector) return (Selector) kind
        if (kind instanceof List || kind instanceof Object[]) return new Selector(this, kind as List)
        if (query instanceof Map) return new Selector(this, kind.toString(), (Map) query)
        if (query instanceof List) return new Selector(this, ((List) query).collect { "$kind/$it".toString() })
        if (query != null) return new Selector(this, ["$kind/$query".toString()])
        kind.toString().contains('/') ? new Selector(this, [kind.toString()]) : new Selector(this, kind.toString(), [:])
    }

    def methodMissing(String name, Object arguments) {
        String command = name.replaceAll(/[A-Z]/) { "-${it.toLowerCase()}" }.replaceFirst(/^_/, '')
        if (!COMMANDS.contains(command)) throw new Failure("openshift.$name: the action does not exist; use openshift.raw. See $PipelineScript.STEPS")
        new Result(name, [oc(command, split(command, arguments as List), null, command in ['describe', 'exec', 'rsh', 'rsync', 'run'])])
    }

    /** Runs a command for objects, which are given as maps, as text, or as oc arguments. */
    private Selector change(String verb, List arguments) {
        String text = arguments ? markup(arguments[0]) : null
        boolean address = !text && arguments && arguments[0].toString().startsWith('http')
        List source = text ? ['-f', '-'] : address ? ['-f', arguments[0]] : []
        selectorOf(verb, [oc(verb, source + split(verb, source ? arguments.drop(1) : arguments) + ['-o', 'name'], text)])
    }

    /** Returns a selector for the objects whose names commands have printed. */
    Selector selectorOf(String operation, List<Map> actions) {
        new Selector(this, actions.collectMany { names((String) it.out) }, operation, actions)
    }

    /** Returns the names in oc's output, without API groups. */
    static List<String> names(String text) {
        text.readLines().findAll { it ==~ /[a-z][^\s\/:]*\/\S+/ }.collect { it.replaceFirst(/\.[^\/]*\//, '/') }
    }

    /**
     * Runs oc in the current project, and throws a Failure if it fails. With toLog, its output is
     * logged.
     */
    Map oc(String verb, List arguments, String input = null, boolean toLog = false) {
        List<String> words = (['-n', project()] + (level ? ["-v=$level"] : []) + [verb] + arguments)*.toString()
        Map action = new Command(run, words, input, toLog || level > 0).run(verb)
        if (level) run.steps.leaf('log') { run.log.println("${action.cmd}\n${action.err}".trim()); null }
        if (action.status) throw new Failure("$action.cmd: ${((String) action.err).trim()}")
        action
    }

    void sleep(long millis) { run.steps.leaf('wait') { run.steps.pause(millis); null } }

    /**
     * Splits arguments into words. As in Jenkins, a shell's quotation marks group the words of an
     * argument, and parameter values can contain spaces.
     */
    static List<String> split(String verb, List arguments) {
        arguments.flatten()*.toString().collectMany { String argument ->
            String text = argument.trim()
            if (verb in ['process', 'new-app', 'new-build']) {
                if (!text.startsWith('-')) return [text]
                return text.split(/\s+(?=-)/).collectMany { String option -> option ==~ /(?s)-\w\s.*/ ? [option.substring(0, 2), option.substring(2).trim()] : [option] }
            }
            if (text ==~ /(?s)[{\[].*/ || !(text =~ /[\s'"]/)) return [text]
            (text =~ /(?:[^\s"']+|"[^"]*"|'[^']*')+/).collect { String word -> word.replaceAll(/"([^"]*)"|'([^']*)'/) { all, one, two -> one ?: two ?: '' } }
        }
    }

    /** Returns the objects in JSON: the items of a list, or the object itself. */
    static List<Map> objects(String text) {
        if (!text.trim()) return []
        Map object = (Map) new JsonSlurper().parseText(text)
        object.items instanceof List ? (List<Map>) object.items : [object]
    }

    /** Returns the text for objects, or null if the argument is an oc argument. */
    private static String markup(Object object) {
        if (object instanceof Map) return JsonOutput.toJson(object)
        if (object instanceof List) return JsonOutput.toJson([apiVersion: 'v1', kind: 'List', items: object])
        String text = object.toString().trim()
        text.contains('\n') || text.startsWith('{') ? text : null
    }
}
