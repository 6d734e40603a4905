package pipeline

import com.cloudbees.groovy.cps.NonCPS
import groovy.json.JsonSlurper
import groovy.transform.CompileDynamic
import groovy.transform.CompileStatic
import org.codehaus.groovy.control.CompilationFailedException
import org.codehaus.groovy.control.CompilerConfiguration
import org.codehaus.groovy.control.customizers.ImportCustomizer

/** A single run of a Jenkinsfile. */
@CompileStatic
class Run {
    final Map build
    final File work
    final String namespace, name, config, number, buildPath
    final Api api = new Api()
    final Log log
    final Journal journal
    final Report report
    final Map<String, String> env = Collections.synchronizedMap([:])
    final Map params = [:]
    final Agent local
    final List<Closure> cleanups = Collections.synchronizedList([])
    long started
    String result
    String description, displayName
    final Set<String> answered = Collections.synchronizedSet([] as Set)

    Run(String text, File work) {
        build = (Map) new JsonSlurper().parseText(text)
        this.work = work
        Map metadata = (Map) build.metadata, annotations = (Map) metadata.annotations
        namespace = metadata.namespace
        name = metadata.name
        number = annotations?.get('openshift.io/build.number') ?: '1'
        config = annotations?.get('openshift.io/build-config.name') ?: name
        buildPath = "/apis/build.openshift.io/v1/namespaces/$namespace/builds/$name"
        work.mkdirs()
        log = new Log(new File(work, 'log'))
        journal = new Journal(new File(work, 'journal'))
        report = new Report(this)
        local = new Agent(this, new File(work, 'workspace').path)
        displayName = "#$number"
        setVariables()
    }

    @CompileDynamic
    private void setVariables() {
        (List) build.spec.strategy.jenkinsPipelineStrategy.env?.each { Map v -> env[(String) v.name] = System.getenv((String) v.name) ?: '' }
        params.putAll(env)
        env.putAll([BUILD_NUMBER: number, BUILD_ID: number, BUILD_DISPLAY_NAME: "#$number".toString(), JOB_NAME: "$namespace/$config".toString(),
                    JOB_BASE_NAME: config, BUILD_TAG: "jenkins-$namespace-$config-$number".toString(), OPENSHIFT_BUILD_NAME: name,
                    OPENSHIFT_BUILD_NAMESPACE: namespace, PROJECT_NAME: namespace])
        def git = build.spec.source?.git
        if (git) env.putAll([GIT_URL: (String) git.uri, GIT_BRANCH: (String) git.ref ?: 'master', BRANCH_NAME: (String) git.ref ?: 'master'])
    }

    /** Returns the path of an earlier build of the same BuildConfig. Build names end with numbers. */
    String pathOf(int earlier) { buildPath.substring(0, buildPath.length() - number.length()) + earlier }

    /** Returns the source that was cloned earlier, or null. */
    @CompileDynamic
    File source() {
        def dir = new File(work, 'source')
        build.spec.source?.git && dir.directory ? dir : null
    }

    /**
     * Runs the Jenkinsfile and returns the termination message: the result, and the reason if the
     * run has failed.
     */
    @CompileDynamic
    String execute() {
        Runtime.runtime.addShutdownHook(new Thread({ cleanUp() }))
        Throwable error = null
        new Frame(dir: local.workspace, agent: null, scope: new Scope(null)).run {
            started = (Long) steps.leaf('start') { System.currentTimeMillis() }
            report.start()
            try {
                script(jenkinsfile()).run()
                if (steps.declarative) steps.declarative.run()
            } catch (Throwable t) {
                error = t
            }
            try {
                artifacts.publish()
            } catch (Exception e) {
                error = error ?: new Failure("keep the artifacts: $e.message")
            }
        }
        if (error) worsen(Failure.resultOf(error))
        result = result ?: 'SUCCESS'
        if (error) log.println(describe(error))
        cleanUp()
        log.println("Finished: $result")
        report.end(result)
        "$result\n${error ? log.mask(describe(error)) : ''}\n".toString()
    }

    final Steps steps = new Steps(this)
    final OpenShift openshift = new OpenShift(this)

    @CompileDynamic
    private Map jenkinsfile() {
        def strategy = build.spec.strategy.jenkinsPipelineStrategy
        if (strategy.jenkinsfile) return [name: 'Jenkinsfile', text: strategy.jenkinsfile]
        def source = source()
        if (!source) throw new Failure('the build has neither a Jenkinsfile nor a Git repository: set jenkinsfile in its strategy, or git in its source')
        def path = [build.spec.source.contextDir, strategy.jenkinsfilePath ?: 'Jenkinsfile'].findAll().join('/')
        def file = new File(source, path)
        if (!file.file || !file.canonicalPath.startsWith(source.canonicalPath + '/')) throw new Failure("the repository has no file \"$path\": set jenkinsfilePath in the build's strategy")
        [name: 'Jenkinsfile', text: file.getText('UTF-8')]
    }

    private final CompilerConfiguration configuration = new CompilerConfiguration(scriptBaseClass: PipelineScript.name)
            .addCompilationCustomizers(new ImportCustomizer().addImports(NonCPS.name))
    final Libraries libraries = new Libraries(this, configuration)
    final Artifacts artifacts = new Artifacts(this)

    @CompileDynamic
    private Script script(Map file) {
        def binding = new Binding([run: null])
        binding.variables.remove('run')
        def shell = new GroovyShell(libraries.loader, binding, configuration)
        try {
            def script = (PipelineScript) shell.parse(libraries.read((String) file.text).replaceAll(/\bequals(\s*\(?\s*(?:expected|actual)\s*:)/, 'equalTo$1'), (String) file.name)
            script.connect(this)
            return script
        } catch (CompilationFailedException e) {
            throw new Failure(e.message)
        }
    }

    /** Compiles another Groovy file in the source, for the step `load`. */
    Script load(String name, String text) { script([name: name.replaceAll(/\W/, '_'), text: text]) }

    private static final List ORDER = ['SUCCESS', 'UNSTABLE', 'FAILURE', 'NOT_BUILT', 'ABORTED']

    /** Sets the build's result, unless the current result is worse. */
    synchronized void worsen(String next) {
        if (!ORDER.contains(next)) throw new Failure("the result \"$next\" is not one of $ORDER")
        if (!result || ORDER.indexOf(next) > ORDER.indexOf(result)) result = next
    }

    private synchronized void cleanUp() {
        while (cleanups) {
            try {
                cleanups.remove(0).call()
            } catch (Exception e) {
                log.println("warning: $e.message")
            }
        }
    }

    @CompileDynamic
    static String describe(Throwable t) {
        if (t instanceof Failure || t instanceof ApiError) return "ERROR: $t.message"
        def at = t.stackTrace.find { it.fileName?.startsWith('Jenkinsfile') }
        "ERROR: ${t.class.name}: ${t.message}" + (at ? " (Jenkinsfile:${at.lineNumber})" : '')
    }
}
