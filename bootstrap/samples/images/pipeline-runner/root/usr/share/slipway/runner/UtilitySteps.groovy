package pipeline

import groovy.json.JsonOutput
import groovy.json.JsonSlurper
import org.yaml.snakeyaml.DumperOptions
import org.yaml.snakeyaml.LoaderOptions
import org.yaml.snakeyaml.Yaml
import org.yaml.snakeyaml.constructor.SafeConstructor

/** Steps of common plugins that read files, or that call other steps or pipelines. */
trait UtilitySteps {
    abstract Run getRun()

    abstract Agent agent()

    abstract leaf(String kind, Closure body)

    abstract String readFile(Object file)

    abstract void archiveArtifacts(Object options)

    /** The older form of calling steps. */
    def step(Map options) {
        Map all = options.findAll { it.key != '$class' }
        switch (options['$class']) {
            case 'JUnitResultArchiver': return getRun().steps.invokeMethod('junit', all)
            case 'ArtifactArchiver': return archiveArtifacts(all)
            case 'WsCleanup': return getRun().steps.deleteDir()
        }
        throw new Failure("step: ${options['$class']} is not supported")
    }

    Map<String, String> readProperties(Map options) {
        def properties = new Properties()
        properties.load(new StringReader((options.text ?: readFile(options.file)).toString()))
        (Map) (options.defaults ?: [:]) + properties
    }

    /** Returns the only document, or a list of all documents. */
    Object readYaml(Map options) {
        List documents = new Yaml(new SafeConstructor(new LoaderOptions())).loadAll((options.text ?: readFile(options.file)).toString()).toList()
        documents.size() == 1 ? documents[0] : documents
    }

    void writeYaml(Map options) {
        def style = new DumperOptions(defaultFlowStyle: DumperOptions.FlowStyle.BLOCK)
        getRun().steps.writeFile(file: options.file, text: new Yaml(style).dump(options.data))
    }

    Object readJSON(Map options) { new JsonSlurper().parseText((options.text ?: readFile(options.file)).toString()) }

    void writeJSON(Map options) { getRun().steps.writeFile(file: options.file, text: JsonOutput.prettyPrint(JsonOutput.toJson(options.json))) }

    /**
     * Returns the home directory in the agent's image of a program that Jenkins would install under
     * a name.
     */
    String tool(Object options) {
        Map all = options instanceof Map ? options : [name: options]
        String words = "${all.type ?: ''} $all.name".toLowerCase()
        String program = [mvn: /maven|mvn|m[23]/, gradle: /gradle/, node: /node/, java: /jdk|java/, oc: /oc/, git: /git/, go: /\bgo/].find { words =~ it.value }?.key ?: all.name
        (String) leaf('tool') {
            String path = agent().output(['sh', '-c', 'readlink -f "$(command -v "$0")" || true', program.toString()]).trim()
            if (!path) throw new Failure("tool: the image of the agent has no program $program for \"$all.name\"")
            String dir = path.substring(0, path.lastIndexOf('/'))
            program == 'oc' || !dir.endsWith('/bin') ? dir : dir.substring(0, dir.length() - 4)
        }
    }

    /** Returns the files that match a pattern, each with its path, name and length. */
    Map[] findFiles(Map options) {
        List files = (List) leaf('findFiles') {
            List<String> words = getRun().steps.matching(options.glob ?: '**', options.excludes, '%s %P\\n')
            agent().output(words).readLines().sort().collect { String line ->
                String path = line.substring(line.indexOf(' ') + 1)
                [path: path, name: path.tokenize('/').last(), directory: false, length: line.tokenize(' ')[0] as long]
            }
        }
        files as Map[]
    }

    /** Starts another pipeline or build in the project, and waits until it ends. */
    void build(Object options) {
        Map all = options instanceof Map ? options : [job: options]
        String name = all.job.toString().tokenize('/').last(), prefix = "${getRun().namespace}-"
        if (name.startsWith(prefix)) name = name.substring(prefix.length())
        List env = ((List) all.parameters)?.collect { Parameter p -> "--env=${p.name}=${p.defaultValue}" } ?: []
        getRun().openshift.oc('start-build', [name] + (all.wait == false ? [] : ['--follow', '--wait']) + env, null, true)
    }

    // Jenkins settings in `properties` that have no effect: BuildConfigs have triggers, run
    // policies and history limits.
    Map buildDiscarder(Object ignored) { [:] }

    Map logRotator(Map ignored) { [:] }

    Map disableConcurrentBuilds(Object ignored = null) { [:] }

    Map pipelineTriggers(List ignored) { [:] }

    Map cron(Object ignored) { [:] }

    Map pollSCM(Object ignored) { [:] }
}
